"""Operations by which somebody who has a token begins a session in a browser, without typing it there."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

from coordinator.clock import wall_time
from coordinator.logins.waiting_room import WaitingRoom
from coordinator.service.operations import Operation, Operations
from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.places import peer_at
from coordinator.trust.registry import Registry
from muster.domain.errors import InvalidJobError, PermissionDeniedError
from muster.domain.fleet.access import Account, AuditEntry, IssuedToken
from muster.domain.fleet.login import HandedCode, SignedIn
from muster.trust.tokens import new_api_token

CODE_LIFE = timedelta(seconds=60)
"""How long a code counts that begins a session."""
MOST_CODES = 1_000
"""Codes that may wait at once."""
MOST_CODES_OF_ONE = 5
"""Codes of one account that wait; the next one takes the place of the oldest."""
SESSION_LIFE = timedelta(hours=12)
"""How long such a session counts; it ends with the token that has begun it, if that is sooner."""
SESSION = "session"
"""The note on tokens of such sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleKnown:
    """What the coordinator knows of its console."""

    url: str = ""
    """How browsers reach it; empty: nobody has said."""
    local_token: str = field(default="", repr=False)
    """The token that everybody of `muster up` shows, in sessions too; empty: accounts have tokens of their own."""


class SessionOperations:
    """Hands callers codes, and gives consoles a session for each."""

    def __init__(self, operations: Operations, registry: Registry, console: ConsoleKnown) -> None:
        self._operations = operations
        self._registry = registry
        self._console = console
        self._codes = WaitingRoom[Caller](most=MOST_CODES, most_of_one=MOST_CODES_OF_ONE)

    async def hand(self, caller: Caller) -> HandedCode:
        """Make a code with which a console begins a session of the caller, who may no more there than here."""
        async with self._operations.begin(caller, "logins.hand", caller.name):
            now = wall_time()
            ends = now + CODE_LIFE
            return HandedCode(
                code=self._codes.enter(caller, caller.name, ends, now), expires_at=ends, console=self._console.url
            )

    async def redeem(self, console: Caller, code: str, browser: str) -> SignedIn:
        """Begin the session of whoever was handed a code; `browser` is the address that shows it to the console."""
        caller = seen_through(console, browser)
        async with self._operations.begin(caller, "logins.redeem") as operation:
            holder = self._codes.leave(code, wall_time())
            if holder is None:
                raise PermissionDeniedError(
                    f"this code counts no more: it counts once, and for {CODE_LIFE.total_seconds():.0f} seconds; "
                    "`muster open` makes another"
                )
            operation.target = holder.name
            if holder.kind is CallerKind.LOCAL:
                operation.ended(holder.name)
                return SignedIn(token=self._console.local_token, own=False)
            return await self._begun(holder, operation)

    async def _begun(self, holder: Caller, operation: Operation) -> SignedIn:
        now, secret, registry = wall_time(), new_api_token(), self._registry
        ends = now + SESSION_LIFE if holder.until is None else min(holder.until, now + SESSION_LIFE)
        token = IssuedToken(
            id=secret.id,
            account=holder.name,
            note=SESSION,
            created_at=now,
            expires_at=ends,
            access=holder.access,
            projects=holder.projects,
        )

        def decided() -> Account:
            account = registry.accounts.get(holder.name)  # while nobody else writes: it may have been revoked since
            if account is None or not registry.still_counts(holder, now):
                raise PermissionDeniedError("the token that has made this code was revoked or changed since")
            return account

        def done(account: Account) -> AuditEntry:
            return replace(operation.entry(account.name, f"ok, token {token.id}"), who=account.name)

        await registry.log_in(decided, secret, token, done)
        return SignedIn(token=str(secret), own=True)


def seen_through(console: Caller, browser: str) -> Caller:
    """A console as it is written down while it asks for a browser at this address; raises InvalidJobError."""
    try:
        return replace(console, origin=peer_at(browser))
    except ValueError:
        raise InvalidJobError(f"{browser!r} is no address of a browser, like 203.0.113.7:51234") from None
