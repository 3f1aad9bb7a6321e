"""The nodes that have joined: by which token, with which key, and whether that still counts."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from coordinator.completion import completed
from coordinator.trust.accounts import kept_as
from coordinator.trust.caller import Caller, CallerKind, RefusedError
from coordinator.trust.changes import TrustChanges
from coordinator.trust.records import StoredJoinToken, TrustSnapshot, TrustStore
from muster.domain.errors import ConflictError
from muster.domain.fleet.access import USED_UP, AuditEntry, EnrolledNode, IssuedJoinToken
from muster.domain.ids import NodeId
from muster.trust.tokens import JoinToken, digest, is_secret_of

_NO_JOIN = "the join token is not known, used up, expired or revoked: ask for a new one (`muster nodes token create`)"


class JoinedNodes:
    """Nodes and the tokens with which they join, in memory for every call of an agent to look at."""

    def __init__(self, store: TrustStore, kept: TrustSnapshot, changes: TrustChanges) -> None:
        self._store = store
        self._changes = changes
        self.tokens = {stored.token.id: stored for stored in kept.join_tokens}
        """Join tokens by id."""
        self.by_name = {node.name: node for node in kept.nodes}
        self._authorities: frozenset[str] = frozenset()
        """Ids of the authorities whose certificates count; empty: all that a door lets in."""

    def caller_with(
        self, name: NodeId | None, key: str, until: datetime, authority: str = "", origin: str = ""
    ) -> Caller:
        """The node that shows a certificate for this key by this authority; raises RefusedError."""
        who = f"node/{name}"
        node = None if name is None else self.by_name.get(name)
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

    def still_counts(self, caller: Caller) -> bool:
        """Whether a node that was let in would be let in again."""
        assert caller.node is not None
        node = self.by_name.get(caller.node)
        known = node is not None and node.revoked_at is None and node.has_key(caller.key)
        return known and self._has_authority(caller.authority)

    def count_authorities(self, ids: frozenset[str]) -> None:
        """Have certificates of nodes count from now on only if one of these authorities signed them."""
        self._authorities = ids
        self._changes.on_less(None)

    def _has_authority(self, id_: str) -> bool:
        return not self._authorities or id_ in self._authorities

    async def add_token(self, secret: JoinToken, token: IssuedJoinToken, entry: AuditEntry) -> IssuedJoinToken:
        """Let nodes join with this token from now on."""
        stored = StoredJoinToken(token=token, digest=digest(secret.secret))
        async with self._changes.writing:
            await self._changes.commit([stored], entry)
            self.tokens[token.id] = stored
        return token

    async def revoke_token(self, token: str, now: datetime, entry: AuditEntry) -> IssuedJoinToken:
        """A token with which nobody joins any more; who has joined stays."""
        async with self._changes.writing:
            stored = kept_as(self.tokens, token, "join token")
            revoked = replace(stored, token=replace(stored.token, revoked_at=stored.token.revoked_at or now))
            await self._changes.commit([revoked], entry)
            self.tokens[token] = revoked
        return revoked.token

    def token(self, shown: JoinToken) -> StoredJoinToken:
        """What is kept of a join token, used up or not; RefusedError for one that nobody has made."""
        stored = self.tokens.get(shown.id)
        if stored is None or not is_secret_of(shown.secret, stored.digest):
            raise RefusedError(_NO_JOIN, "wrong join token")
        return stored

    async def enrol(self, shown: JoinToken, name: NodeId, key: str, entry: AuditEntry, epoch: int = 0) -> EnrolledNode:
        """Take a node in on a token; raises RefusedError, and ConflictError for a name that another node has."""
        async with self._changes.writing:
            stored = self.token(shown)
            known = self.by_name.get(name)
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
            used = await completed(asyncio.to_thread(self._store.enrol, shown.id, node, entry))
            if used is None:
                raise RefusedError(_NO_JOIN, f"join token {shown.id} has no use left")
            self.tokens[shown.id] = replace(stored, token=used)
            self.by_name[name] = node
        self._changes.on_less(name)
        return node

    async def offer_key(self, name: NodeId, key: str, epoch: int, entry: AuditEntry) -> None:
        """Have another key of a node count as well; once it is shown, the key of before counts no more."""
        async with self._changes.writing:
            node = kept_as(self.by_name, name, "enrolled node")
            changed = replace(node, next_key=key, next_epoch=epoch)
            await self._changes.commit([changed], entry)
            self.by_name[name] = changed

    async def settle_key(self, name: NodeId, key: str, entry: AuditEntry) -> None:
        """A node has shown this key: if it is the newer one, the key of before counts no more."""
        async with self._changes.writing:
            node = kept_as(self.by_name, name, "enrolled node")
            if node.next_key != key:
                return
            settled = replace(node, key=key, epoch=node.next_epoch, next_key="", next_epoch=0)
            await self._changes.commit([settled], entry)
            self.by_name[name] = settled
        self._changes.on_less(name)

    async def revoke(self, name: NodeId, now: datetime, entry: AuditEntry) -> EnrolledNode:
        """A node whose certificate does not count any more."""
        async with self._changes.writing:
            node = kept_as(self.by_name, name, "enrolled node")
            revoked = replace(node, revoked_at=node.revoked_at or now)
            await self._changes.commit([revoked], entry)
            self.by_name[name] = revoked
        self._changes.on_less(name)
        return revoked

    async def label(
        self, name: NodeId, labels: Mapping[str, str], removed: Collection[str], entry: AuditEntry
    ) -> Mapping[str, str]:
        """The labels that tokens and operators have given a node, after a change of some."""
        async with self._changes.writing:
            node = kept_as(self.by_name, name, "enrolled node")
            kept = {key: value for key, value in node.labels.items() if key not in removed}
            changed = replace(node, labels={**kept, **labels})
            await self._changes.commit([changed], entry)
            self.by_name[name] = changed
        return changed.labels

    def labels_of(self, node: NodeId) -> Mapping[str, str]:
        """The labels that a node has from its join token and from operators."""
        return self.by_name[node].labels if node in self.by_name else {}
