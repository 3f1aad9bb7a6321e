"""Operations by which people log in whom the identity provider knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from coordinator.clock import wall_time
from coordinator.logins.desk import LoginDesk
from coordinator.logins.person import Person, account_of, grants_of, known_as, no_access
from coordinator.logins.provider import DeviceLogin
from coordinator.service.operations import Operation, Operations
from coordinator.trust.caller import Caller
from coordinator.trust.places import place_of
from coordinator.trust.registry import Registry
from muster.domain.errors import MusterError, UnknownNameError
from muster.domain.fleet.access import Access, Account, AuditEntry, IssuedToken
from muster.trust.tokens import new_api_token

LOGIN = "login"
"""The note on tokens that were made by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedLogin:
    """A login that waits for its person."""

    shown: str = field(repr=False)
    """What its client shows to finish it."""
    login: DeviceLogin


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedLogin:
    """The token of a person who has confirmed."""

    secret: str = field(repr=False)
    token: IssuedToken


class LoginOperations:
    """Lets people in on the word of the identity provider."""

    def __init__(self, operations: Operations, registry: Registry, desk: LoginDesk | None) -> None:
        self._operations = operations
        self._registry = registry
        self._given = desk

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

    async def _let_in(self, person: Person, desk: LoginDesk, operation: Operation) -> FinishedLogin:
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

    def _desk(self) -> LoginDesk:
        if self._given is None:
            raise UnknownNameError(
                "this coordinator knows no identity provider; log in with a token: --token-file FILE, or MUSTER_TOKEN"
            )
        return self._given
