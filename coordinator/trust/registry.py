"""The registry: who is known, kept in memory for every call to look at, written rarely and by one at a time."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.trust.accounts import Accounts, kept_as
from coordinator.trust.caller import Caller, CallerKind, RefusedError
from coordinator.trust.changes import TrustChanges
from coordinator.trust.joined_nodes import JoinedNodes
from coordinator.trust.records import (
    AuditWish,
    RemovedAccount,
    RemovedToken,
    StoredToken,
    TokensUsed,
    TrustStore,
)
from coordinator.trust.token_uses import TokenUses
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import (
    TOKEN_WARNING,
    Account,
    AccountKind,
    AuditAnchor,
    AuditEntry,
    IssuedToken,
    Project,
    narrowed,
)
from muster.domain.fleet.project_use import ProjectUse, UseKind, use_by
from muster.trust.tokens import ApiToken, TokenFormError, digest, is_secret_of, parse_api_token

ADMIN = "admin"
"""The first account."""
LONGEST_TTL = timedelta(days=3650)


class Registry(Accounts):
    """Everybody who is known. Reading is a look into memory; changing waits until the change is durable."""

    def __init__(self, store: TrustStore, projects: Mapping[str, Project]) -> None:
        """`projects`: those that there are, kept by somebody else."""
        kept = store.load_trust()
        changes = TrustChanges(store)
        super().__init__(kept, changes, projects)
        self._store = store
        self.changes = changes
        self.uses = TokenUses()
        self.tokens = {stored.token.id: stored for stored in kept.tokens}
        self.joined = JoinedNodes(store, kept, changes)

    # who calls

    def caller_with(self, text: str, now: datetime, origin: str = "") -> Caller:
        """The caller who shows an API token from this address; raises RefusedError."""
        refusal = "the token is not known, has expired or was revoked: log in again with `muster login`"
        try:
            shown = parse_api_token(text)
        except TokenFormError:
            raise RefusedError(refusal, "malformed token") from None
        stored = self.tokens.get(shown.id)
        if stored is None or not is_secret_of(shown.secret, stored.digest):
            raise RefusedError(refusal, "wrong token")
        token = stored.token
        if not token.valid(now):
            cause = "revoked token" if token.revoked_at else "expired token"
            raise RefusedError(refusal, f"{cause} {token.id}", token.account)
        account = self.accounts[token.account]
        self.uses.note(token.id, now)
        return self._caller(account, token, origin)

    def holder_of(self, name: str, token: str, now: datetime) -> Caller | None:
        """The caller that an account and the id of its token stand for; None: they count no more, or do not fit."""
        stored, account = self.tokens.get(token), self.accounts.get(name)
        if stored is None or account is None or stored.token.account != name or not stored.token.valid(now):
            return None
        return self._caller(account, stored.token, "")

    def _caller(self, account: Account, token: IssuedToken, origin: str) -> Caller:
        ends = token.expires_at
        return Caller(
            kind=CallerKind(account.kind.value),
            name=account.name,
            grants=narrowed(account.grants, token.access, token.projects),
            token=token.id,
            until=ends,
            access=token.access,
            projects=token.projects,
            # Whoever comes from the identity provider logs in again every day or so, and knows.
            warned_from=None if ends is None or account.identity else ends - TOKEN_WARNING,
            origin=origin,
        )

    def still_counts(self, caller: Caller, now: datetime) -> bool:
        """Whether a caller who was let in would be let in again, with no less than before."""
        if caller.kind is CallerKind.NODE:
            return self.joined.still_counts(caller)
        if not caller.token:
            return True
        stored, account = self.tokens.get(caller.token), self.accounts.get(caller.name)
        if stored is None or account is None or not stored.token.valid(now):
            return False
        return narrowed(account.grants, caller.access, caller.projects) == caller.grants

    # accounts

    async def add_first_admin(self, admin: Account, secret: ApiToken, token: IssuedToken, entry: AuditEntry) -> None:
        """The first account and its token, both or none."""
        stored = StoredToken(token=token, digest=digest(secret.secret))
        async with self._changes.writing:
            await self._changes.commit([admin, stored], entry)
            self.accounts[admin.name], self.tokens[token.id] = admin, stored

    async def remove_account(self, name: str, kind: AccountKind, entry: AuditEntry) -> None:
        """Forget an account and its tokens; the last one that may do everything stays."""
        async with self._changes.writing:
            account = self.account(name)
            if account.kind is not kind:
                raise UnknownNameError(f"{name} is a {account.kind} account, not a {kind} account")
            self._keep_an_admin({**self.accounts, name: replace(account, grants={})})
            await self._changes.commit([RemovedAccount(name=name)], entry)
            del self.accounts[name]
            for token in [id_ for id_, stored in self.tokens.items() if stored.token.account == name]:
                del self.tokens[token]
        self._changes.on_less(None)

    # tokens

    async def add_token(self, secret: ApiToken, token: IssuedToken, entry: AuditEntry) -> IssuedToken:
        """Let an account be known by this token from now on."""
        stored = StoredToken(token=token, digest=digest(secret.secret))
        async with self._changes.writing:
            self.account(token.account)  # nobody removes it meanwhile: the token would be that of the next of its name
            self.require_projects(token.projects)
            await self._changes.commit([stored], entry)
            self.tokens[token.id] = stored
        return token

    async def log_in(
        self,
        decide: Callable[[], Account],
        secret: ApiToken,
        token: IssuedToken,
        done: Callable[[Account], AuditEntry],
    ) -> IssuedToken:
        """Let an account, new or changed as `decide` has it, be known by this token; its older ones that have ended go.

        The last one who may do everything may lose that here: the identity provider outweighs what was before.
        """
        async with self._changes.writing:
            account = decide()
            before = self.accounts.get(account.name)
            token = replace(token, account=account.name)
            stored = StoredToken(token=token, digest=digest(secret.secret))
            ended = [
                RemovedToken(id=each.token.id)
                for each in self.tokens.values()
                if (each.token.account, each.token.note) == (account.name, token.note)
                and not each.token.valid(token.created_at)
            ]
            await self._changes.commit([account, *ended, stored], done(account))
            self.accounts[account.name], self.tokens[token.id] = account, stored
            for gone in ended:
                del self.tokens[gone.id]
        if before is not None and before.grants != account.grants:
            self._changes.on_less(None)
        return token

    async def revoke_token(self, token: str, now: datetime, entry: AuditEntry) -> IssuedToken:
        """A token that does not count any more."""
        async with self._changes.writing:
            revoked = _revoked(kept_as(self.tokens, token, "token"), now)
            await self._changes.commit([revoked], entry)
            self.tokens[token] = revoked
        self._changes.on_less(None)
        return revoked.token

    async def prune_tokens(self, tokens: Collection[str], now: datetime, entry: AuditEntry) -> Sequence[IssuedToken]:
        """Tokens that counted, revoked now; those that did not count any more are forgotten."""
        async with self._changes.writing:
            found = [kept_as(self.tokens, token, "token") for token in tokens]
            revoked = [_revoked(stored, now) for stored in found if stored.token.valid(now)]
            gone = [stored.token.id for stored in found if not stored.token.valid(now)]
            await self._changes.commit([*revoked, *(RemovedToken(id=id_) for id_ in gone)], entry)
            self.tokens.update({stored.token.id: stored for stored in revoked})
            for id_ in gone:
                del self.tokens[id_]
        self._changes.on_less(None)
        return [stored.token for stored in revoked]

    def issued_tokens(self) -> Sequence[IssuedToken]:
        """Every API token with its last use, oldest first."""
        every = [self.uses.told(stored.token) for stored in self.tokens.values()]
        return sorted(every, key=lambda token: token.created_at)

    def uses_of(self, project: str, now: datetime) -> tuple[ProjectUse, ...]:
        """Accounts with access to a project, and tokens that count now and were made for it."""
        granted = sorted(account.name for account in self.accounts.values() if project in account.grants)
        issued = [token.id for token in self.issued_tokens() if token.valid(now) and project in token.projects]
        return (*use_by(UseKind.GRANT, granted), *use_by(UseKind.TOKEN, issued))

    async def keep_uses(self) -> None:
        """Write down which tokens were used since this was done last: all in one transaction."""
        if times := self.uses.take():
            try:
                await asyncio.to_thread(self._store.commit_trust, (TokensUsed(times=times),), ())
            except BaseException:
                self.uses.put_back(times)
                raise

    # the audit log

    async def note(self, entries: Sequence[AuditEntry]) -> None:
        """Keep entries."""
        await asyncio.to_thread(self._store.commit_trust, (), entries)

    async def audit(self, wish: AuditWish) -> Sequence[AuditEntry]:
        """Entries of the audit log, oldest first."""
        return await asyncio.to_thread(self._store.audit, wish)

    async def audit_anchor(self) -> AuditAnchor:
        """The last entry of those that were removed because they were old."""
        return await asyncio.to_thread(self._store.audit_anchor)

    async def prune_audit(self, before: datetime, most: int | None, now: datetime) -> int:
        """Remove entries from before a time, not beyond the number `most`; how many."""
        return await asyncio.to_thread(self._store.prune_audit, before, most, now)


def _revoked(stored: StoredToken, now: datetime) -> StoredToken:
    return replace(stored, token=replace(stored.token, revoked_at=stored.token.revoked_at or now))
