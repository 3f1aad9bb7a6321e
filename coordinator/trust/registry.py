"""The registry: who is known, kept in memory for every call to look at, written rarely and by one at a time."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.trust.accounts import Accounts, kept_as
from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.records import (
    AuditWish,
    RemovedAccount,
    RemovedToken,
    StoredJoinToken,
    StoredToken,
    TokensUsed,
    TrustStore,
)
from coordinator.trust.token_uses import TokenUses
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import (
    TOKEN_WARNING,
    USED_UP,
    Account,
    AccountKind,
    AuditAnchor,
    AuditEntry,
    EnrolledNode,
    IssuedJoinToken,
    IssuedToken,
    Project,
    narrowed,
)
from muster.domain.ids import NodeId
from muster.trust.tokens import ApiToken, JoinToken, TokenFormError, digest, is_secret_of, parse_api_token

ADMIN = "admin"
"""The first account."""
LONGEST_TTL = timedelta(days=3650)

_NO_JOIN = "the join token is not known, used up, expired or revoked: ask for a new one (`muster nodes token create`)"


class RefusedError(PermissionDeniedError):
    """A token or certificate does not count; the message may be shown to a stranger, `cause` stays in the audit log."""

    def __init__(self, message: str, cause: str, who: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.who = who


class Registry(Accounts):
    """Everybody who is known. Reading is a look into memory; changing waits until the change is durable."""

    def __init__(self, store: TrustStore, projects: Mapping[str, Project]) -> None:
        """`projects`: those that there are, kept by somebody else."""
        kept = store.load_trust()
        super().__init__(store, kept, projects)
        self.uses = TokenUses()
        self.tokens = {stored.token.id: stored for stored in kept.tokens}
        self.join_tokens = {stored.token.id: stored for stored in kept.join_tokens}
        self.nodes = {node.name: node for node in kept.nodes}
        self._authorities: frozenset[str] = frozenset()
        """Ids of the authorities whose certificates count; empty: all that a door lets in."""

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
        ends = token.expires_at
        return Caller(
            kind=CallerKind.USER if account.kind is AccountKind.USER else CallerKind.SERVICE,
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

    def node_with(
        self, name: NodeId | None, key: str, until: datetime, authority: str = "", origin: str = ""
    ) -> Caller:
        """The node that shows a certificate for this key by this authority; raises RefusedError."""
        who = f"node/{name}"
        node = None if name is None else self.nodes.get(name)
        if node is None:
            raise RefusedError(f"node {name} has not joined this fleet", "unknown node", who)
        if node.revoked_at is not None:
            raise RefusedError(f"node {name} was sent away; it may join again with a new token", "revoked node", who)
        if not node.has_key(key):
            raise RefusedError(f"node {name} has joined anew with another key", "outdated key", who)
        if not self._has_authority(authority):
            raise RefusedError(
                f"node {name} shows a certificate of an authority that counts no more: make a token with `muster nodes "
                "token create` and have it join again",
                "former authority",
                who,
            )
        return Caller(
            kind=CallerKind.NODE, name=who, node=node.name, key=key, authority=authority, until=until, origin=origin
        )

    def still_counts(self, caller: Caller, now: datetime) -> bool:
        """Whether a caller who was let in would be let in again, with no less than before."""
        if caller.kind is CallerKind.NODE:
            assert caller.node is not None
            node = self.nodes.get(caller.node)
            known = node is not None and node.revoked_at is None and node.has_key(caller.key)
            return known and self._has_authority(caller.authority)
        if not caller.token:
            return True
        stored, account = self.tokens.get(caller.token), self.accounts.get(caller.name)
        if stored is None or account is None or not stored.token.valid(now):
            return False
        return narrowed(account.grants, caller.access, caller.projects) == caller.grants

    def count_authorities(self, ids: frozenset[str]) -> None:
        """Have certificates of nodes count from now on only if one of these authorities signed them."""
        self._authorities = ids
        self.on_less(None)

    def _has_authority(self, id_: str) -> bool:
        return not self._authorities or id_ in self._authorities

    # accounts

    async def add_first_admin(self, admin: Account, secret: ApiToken, token: IssuedToken, entry: AuditEntry) -> None:
        """The first account and its token, both or none."""
        stored = StoredToken(token=token, digest=digest(secret.secret))
        async with self._writing:
            await self._commit([admin, stored], entry)
            self.accounts[admin.name], self.tokens[token.id] = admin, stored

    async def remove_account(self, name: str, kind: AccountKind, entry: AuditEntry) -> None:
        """Forget an account and its tokens; the last one that may do everything stays."""
        async with self._writing:
            account = self.account(name)
            if account.kind is not kind:
                raise UnknownNameError(f"{name} is a {account.kind} account, not a {kind} account")
            self._keep_an_admin({**self.accounts, name: replace(account, grants={})})
            await self._commit([RemovedAccount(name=name)], entry)
            del self.accounts[name]
            for token in [id_ for id_, stored in self.tokens.items() if stored.token.account == name]:
                del self.tokens[token]
        self.on_less(None)

    # tokens

    async def add_token(self, secret: ApiToken, token: IssuedToken, entry: AuditEntry) -> IssuedToken:
        """Let an account be known by this token from now on."""
        stored = StoredToken(token=token, digest=digest(secret.secret))
        async with self._writing:
            self.account(token.account)  # nobody removes it meanwhile: the token would be that of the next of its name
            await self._commit([stored], entry)
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
        async with self._writing:
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
            await self._commit([account, *ended, stored], done(account))
            self.accounts[account.name], self.tokens[token.id] = account, stored
            for gone in ended:
                del self.tokens[gone.id]
        if before is not None and before.grants != account.grants:
            self.on_less(None)
        return token

    async def revoke_token(self, token: str, now: datetime, entry: AuditEntry) -> IssuedToken:
        """A token that does not count any more."""
        async with self._writing:
            revoked = _revoked(kept_as(self.tokens, token, "token"), now)
            await self._commit([revoked], entry)
            self.tokens[token] = revoked
        self.on_less(None)
        return revoked.token

    async def prune_tokens(self, tokens: Collection[str], now: datetime, entry: AuditEntry) -> Sequence[IssuedToken]:
        """Tokens that counted, revoked now; those that did not count any more are forgotten."""
        async with self._writing:
            found = [kept_as(self.tokens, token, "token") for token in tokens]
            revoked = [_revoked(stored, now) for stored in found if stored.token.valid(now)]
            gone = [stored.token.id for stored in found if not stored.token.valid(now)]
            await self._commit([*revoked, *(RemovedToken(id=id_) for id_ in gone)], entry)
            self.tokens.update({stored.token.id: stored for stored in revoked})
            for id_ in gone:
                del self.tokens[id_]
        self.on_less(None)
        return [stored.token for stored in revoked]

    def issued_tokens(self) -> Sequence[IssuedToken]:
        """Every API token with its last use, oldest first."""
        every = [self.uses.told(stored.token) for stored in self.tokens.values()]
        return sorted(every, key=lambda token: token.created_at)

    async def keep_uses(self) -> None:
        """Write down which tokens were used since this was done last: all in one transaction."""
        if times := self.uses.take():
            try:
                await asyncio.to_thread(self._store.commit_trust, (TokensUsed(times=times),), ())
            except BaseException:
                self.uses.put_back(times)
                raise

    # nodes

    async def add_join_token(self, secret: JoinToken, token: IssuedJoinToken, entry: AuditEntry) -> IssuedJoinToken:
        """Let nodes join with this token from now on."""
        stored = StoredJoinToken(token=token, digest=digest(secret.secret))
        async with self._writing:
            await self._commit([stored], entry)
            self.join_tokens[token.id] = stored
        return token

    async def revoke_join_token(self, token: str, now: datetime, entry: AuditEntry) -> IssuedJoinToken:
        """A token with which nobody joins any more; who has joined stays."""
        async with self._writing:
            stored = kept_as(self.join_tokens, token, "join token")
            revoked = replace(stored, token=replace(stored.token, revoked_at=stored.token.revoked_at or now))
            await self._commit([revoked], entry)
            self.join_tokens[token] = revoked
        return revoked.token

    def join_token(self, shown: JoinToken) -> StoredJoinToken:
        """What is kept of a join token, used up or not; RefusedError for one that nobody has made."""
        stored = self.join_tokens.get(shown.id)
        if stored is None or not is_secret_of(shown.secret, stored.digest):
            raise RefusedError(_NO_JOIN, "wrong join token")
        return stored

    async def enrol(self, shown: JoinToken, name: NodeId, key: str, entry: AuditEntry, epoch: int = 0) -> EnrolledNode:
        """Take a node in on a token; raises RefusedError, and ConflictError for a name that another node has."""
        async with self._writing:
            stored = self.join_token(shown)
            known = self.nodes.get(name)
            again = known is not None and (known.key, known.token, known.revoked_at) == (key, shown.id, None)
            cause = stored.token.refusal(entry.at)
            if cause is not None and not (again and cause == USED_UP):
                raise RefusedError(_NO_JOIN, f"join token {shown.id} {cause}")
            if known is not None and again:
                return known  # it asks once more because the answer got lost
            if known is not None and known.revoked_at is None and not known.has_key(key):
                raise ConflictError(
                    f"there is a node {name} with another key; if that one is gone for good, say `muster nodes revoke "
                    f"{name}` and join again, else give this one another --name",
                )
            # The same machine once more: what operators have said of it since it joined first still holds.
            same = known is not None and known.revoked_at is None
            labels = {**(known.labels if known is not None and same else {}), **stored.token.labels}
            node = EnrolledNode(name=name, key=key, enrolled_at=entry.at, token=shown.id, labels=labels, epoch=epoch)
            used = await asyncio.to_thread(self._store.enrol, shown.id, node, entry)
            if used is None:
                raise RefusedError(_NO_JOIN, f"join token {shown.id} has no use left")
            self.join_tokens[shown.id] = replace(stored, token=used)
            self.nodes[name] = node
        self.on_less(name)
        return node

    async def offer_key(self, name: NodeId, key: str, epoch: int, entry: AuditEntry) -> None:
        """Have another key of a node count as well; once it is shown, the key of before counts no more."""
        async with self._writing:
            node = kept_as(self.nodes, name, "enrolled node")
            changed = replace(node, next_key=key, next_epoch=epoch)
            await self._commit([changed], entry)
            self.nodes[name] = changed

    async def settle_key(self, name: NodeId, key: str, entry: AuditEntry) -> None:
        """A node has shown this key: if it is the newer one, the key of before counts no more."""
        async with self._writing:
            node = kept_as(self.nodes, name, "enrolled node")
            if node.next_key != key:
                return
            settled = replace(node, key=key, epoch=node.next_epoch, next_key="", next_epoch=0)
            await self._commit([settled], entry)
            self.nodes[name] = settled
        self.on_less(name)

    async def revoke_node(self, name: NodeId, now: datetime, entry: AuditEntry) -> EnrolledNode:
        """A node whose certificate does not count any more."""
        async with self._writing:
            node = kept_as(self.nodes, name, "enrolled node")
            revoked = replace(node, revoked_at=node.revoked_at or now)
            await self._commit([revoked], entry)
            self.nodes[name] = revoked
        self.on_less(name)
        return revoked

    async def label_node(
        self, name: NodeId, labels: Mapping[str, str], removed: Collection[str], entry: AuditEntry
    ) -> Mapping[str, str]:
        """The labels that tokens and operators have given a node, after a change of some."""
        async with self._writing:
            node = kept_as(self.nodes, name, "enrolled node")
            kept = {key: value for key, value in node.labels.items() if key not in removed}
            changed = replace(node, labels={**kept, **labels})
            await self._commit([changed], entry)
            self.nodes[name] = changed
        return changed.labels

    def labels_of(self, node: NodeId) -> Mapping[str, str]:
        """The labels that a node has from its join token and from operators."""
        return self.nodes[node].labels if node in self.nodes else {}

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
