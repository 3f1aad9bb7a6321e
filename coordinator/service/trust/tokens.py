"""Operations on API tokens: everybody has their own, and an admin those of all."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from coordinator.clock import wall_time
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from coordinator.trust.narrowing import within
from coordinator.trust.registry import LONGEST_TTL, Registry
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError
from muster.domain.fleet.access import PERSON_TOKEN_LIFE, Access, AccountKind, IssuedToken
from muster.trust.tokens import new_api_token

NOTE = 200
"""Most characters of a note on a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWish:
    """The token that somebody asks for."""

    account: str = ""
    """The account that the token speaks for; empty: the caller's."""
    note: str = ""
    ttl: timedelta | None = None
    """How long it counts; None: as long as tokens of such an account do."""
    access: Access | None = None
    """The most that it may; None: all that its account may."""
    projects: Collection[str] = ()
    """The only projects in which it counts; empty: wherever its account has access."""


class TokenOperations:
    """What callers may do with API tokens."""

    def __init__(self, operations: Operations, registry: Registry) -> None:
        self._operations = operations
        self._registry = registry

    async def create(self, caller: Caller, wish: TokenWish) -> tuple[str, IssuedToken]:
        """Make a token; its secret, which nobody is told again, and what is known of it."""
        account = wish.account or caller.name
        async with self._operations.begin(caller, "tokens.create", account) as operation:
            now, secret = wall_time(), new_api_token()
            _require_own(caller, account, "tokens of others are made by an admin")
            access, projects = wish.access, tuple(sorted(set(wish.projects)))
            if account == caller.name:
                access, projects = within(caller, access, projects)
            token = IssuedToken(
                id=secret.id,
                account=account,
                note=wish.note[:NOTE],
                created_at=now,
                expires_at=self._end(caller, account, wish.ttl, now),
                access=access,
                projects=projects,
            )
            await self._registry.add_token(secret, token, operation.done(f"token {token.id}{_scope(token)}"))
            return str(secret), token

    async def list(self, caller: Caller) -> Sequence[IssuedToken]:
        """Tokens, oldest first: the caller's, or for an admin those of all."""
        async with self._operations.begin(caller, "tokens.list"):
            every = self._registry.issued_tokens()
            return [token for token in every if caller.may(Access.ADMIN) or token.account == caller.name]

    async def revoke(self, caller: Caller, token: str) -> IssuedToken:
        """Have a token count no more; the caller's, or for an admin anybody's."""
        async with self._operations.begin(caller, "tokens.revoke", token) as operation:
            self._require_own_token(caller, token)
            return await self._registry.revoke_token(token, wall_time(), operation.done())

    async def prune(self, caller: Caller, tokens: Collection[str]) -> Sequence[IssuedToken]:
        """Clear tokens away; those that counted until now."""
        async with self._operations.begin(caller, "tokens.prune") as operation:
            wanted = set(tokens)
            for token in wanted:
                self._require_own_token(caller, token)
            if caller.token in wanted:
                raise ConflictError("the token that you show now is in use; leave it out")
            done = operation.done(f"{len(wanted)} tokens: {' '.join(sorted(wanted))}")
            return await self._registry.prune_tokens(wanted, wall_time(), done)

    def _end(self, caller: Caller, account: str, ttl: timedelta | None, now: datetime) -> datetime | None:
        """When a token ends that is made now; None: never."""
        ends = self._usual_end(account, now) if ttl is None else now + checked_ttl(ttl)
        known_elsewhere = self._registry.identity_of(account)
        if account == caller.name and caller.until is not None and (known_elsewhere or not caller.may(Access.ADMIN)):
            # Whoever finds a token that is about to end must not make one of it that never does; and whoever is closed
            # out at the identity provider is out when that login ends.
            return caller.until if ends is None else min(ends, caller.until)
        return ends

    def _usual_end(self, account: str, now: datetime) -> datetime | None:
        known = self._registry.accounts.get(account)
        return now + PERSON_TOKEN_LIFE if known is not None and known.kind is AccountKind.USER else None

    def _require_own_token(self, caller: Caller, token: str) -> None:
        stored = self._registry.tokens.get(token)
        if stored is None:
            return
        _require_own(caller, stored.token.account, "tokens of others are revoked by an admin")
        if caller.narrowed and token != caller.token and not caller.may(Access.ADMIN):
            raise PermissionDeniedError("this token may less than its account, so it revokes itself and no other")


def checked_ttl(ttl: timedelta) -> timedelta:
    """A length of time for which a token may count; raises InvalidJobError for any other."""
    if not timedelta(0) < ttl <= LONGEST_TTL:
        raise InvalidJobError(f"a token may count for a second up to {LONGEST_TTL.days} days")
    return ttl


def _scope(token: IssuedToken) -> str:
    if not token.narrowed:
        return ""
    return f" ({token.access or 'all access'} in {', '.join(token.projects) or 'every project'})"


def _require_own(caller: Caller, account: str, otherwise: str) -> None:
    if account != caller.name and not caller.may(Access.ADMIN):
        raise PermissionDeniedError(otherwise)
