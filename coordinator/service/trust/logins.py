"""Operations by which people log in whom the identity provider knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from coordinator.clock import wall_time
from coordinator.logins.person import Person, account_of, grants_of, known_as, no_access
from coordinator.service.operations import Operation, Operations
from coordinator.service.trust.sessions import ConsoleKnown, seen_through
from coordinator.trust.caller import Caller
from coordinator.trust.places import place_of
from coordinator.trust.registry import Registry
from muster.domain.errors import ConflictError, MusterError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access, Account, AuditEntry, IssuedToken
from muster.domain.fleet.login import WAY_BACK, BrowserLogin, SignedIn
from muster.trust.tokens import new_api_token

if TYPE_CHECKING:  # they load a library for HTTP, and few fleets have a provider
    from coordinator.logins.desk import LoginDesk
    from coordinator.logins.provider import DeviceLogin

LOGIN = "login"
"""The note on tokens that were made by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedLogin:
    """A login that waits for its person."""

    shown: str = field(repr=False)
    """What its client shows to finish it."""
    login: "DeviceLogin"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedLogin:
    """The token of a person who has confirmed."""

    secret: str = field(repr=False)
    token: IssuedToken


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """What a browser brings back from the identity provider, with the secret of its login."""

    login: str = field(repr=False)
    state: str = field(repr=False)
    code: str = field(repr=False)


class LoginOperations:
    """Lets people in on the word of the identity provider."""

    def __init__(
        self, operations: Operations, registry: Registry, desk: "LoginDesk | None", console: ConsoleKnown
    ) -> None:
        self._operations = operations
        self._registry = registry
        self._given = desk
        self._console = console

    async def start(self, caller: Caller) -> StartedLogin:
        """Begin a login that waits for its person."""
        desk = self._desk()
        async with self._operations.begin(caller, "logins.start") as operation:
            try:
                shown, login = await desk.start(place_of(caller.origin), wall_time())
            except MusterError as error:
                operation.refused(str(error))
                raise
            return StartedLogin(shown=shown, login=login)

    async def finish(self, caller: Caller, shown: str) -> FinishedLogin | timedelta:
        """The token of a person who has confirmed; or how long to wait before asking again."""
        desk = self._desk()
        async with self._operations.begin(caller, "logins.finish") as operation:
            try:
                found = await desk.finish(shown, wall_time())
                if not isinstance(found, Person):
                    return found
                operation.target = f"{found.name} ({found.identity})"
                return await self._let_in(found, desk, operation)
            except MusterError as error:
                operation.refused(str(error))
                raise

    async def begin(self, console: Caller, redirect_uri: str, browser: str) -> BrowserLogin:
        """Begin a login in the browser at this address, which comes back to the console that was named."""
        desk, caller = self._desk("sign in with an API token"), seen_through(console, browser)
        async with self._operations.begin(caller, "logins.begin", redirect_uri) as operation:
            try:
                self._refuse_other_way_back(redirect_uri)
                return await desk.browsers.begin(redirect_uri, place_of(caller.origin), wall_time())
            except MusterError as error:
                operation.refused(str(error))
                raise

    async def complete(self, console: Caller, answer: ProviderAnswer, browser: str) -> SignedIn:
        """End a login in a browser with what the provider has sent it back with."""
        desk, caller = self._desk("sign in with an API token"), seen_through(console, browser)
        async with self._operations.begin(caller, "logins.complete") as operation:
            try:
                person = await desk.browsers.complete(answer.login, answer.state, answer.code, wall_time())
                operation.target = f"{person.name} ({person.identity})"
                made = await self._let_in(person, desk, operation)
            except MusterError as error:
                operation.refused(str(error))
                raise
            return SignedIn(token=made.secret, own=True)

    def _refuse_other_way_back(self, redirect_uri: str) -> None:
        if not self._console.url:
            raise ConflictError(
                "this coordinator was not told where its console is, so nobody logs in there; whoever runs it says so "
                "with --console-url"
            )
        if redirect_uri != f"{self._console.url}{WAY_BACK}":
            raise PermissionDeniedError(
                f"people come back to {self._console.url} alone (--console-url); --url of the console must be the same"
            )

    async def _let_in(self, person: Person, desk: "LoginDesk", operation: Operation) -> FinishedLogin:
        now, secret, settings, registry = wall_time(), new_api_token(), desk.settings, self._registry

        def granted() -> Mapping[str, Access]:
            return grants_of(person.groups, settings.grants, registry.projects)

        if not granted():
            await self._shut_out(person, operation)
            raise no_access(person)
        token = IssuedToken(id=secret.id, account="", note=LOGIN, created_at=now, expires_at=now + settings.ttl)

        def decided() -> Account:
            grants = granted()  # while nobody else writes: a project may have been removed since
            if not grants:
                raise no_access(person)
            return account_of(person, grants, registry.accounts, now)

        def done(account: Account) -> AuditEntry:
            has = ", ".join(f"{access} for {project}" for project, access in sorted(account.grants.items()))
            how = f"ok, token {token.id} of {person.identity}: {has}"
            return replace(operation.entry(account.name, how), who=account.name)

        return FinishedLogin(secret=str(secret), token=await registry.log_in(decided, secret, token, done))

    async def _shut_out(self, person: Person, operation: Operation) -> None:
        """Take access away from somebody who has left all groups, which an earlier login gave."""
        account = known_as(person, self._registry.accounts)
        if account is not None and account.grants:
            left = operation.entry(account.name, f"no access any more: {person.identity}")
            await self._registry.take_grants(account.name, left)

    def _desk(self, otherwise: str = "log in with a token: --token-file FILE, or MUSTER_TOKEN") -> "LoginDesk":
        if self._given is None:
            raise UnknownNameError(f"this coordinator knows no identity provider; {otherwise}")
        return self._given
