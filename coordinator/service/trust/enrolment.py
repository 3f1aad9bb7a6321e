"""Operations on the nodes that have joined, on the tokens with which they do, and the join itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from coordinator.clock import wall_time
from coordinator.service.operations import Operations
from coordinator.service.trust.tokens import checked_ttl
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.caller import Caller, RefusedError
from coordinator.trust.joined_nodes import JoinedNodes
from muster.domain.errors import ConflictError, MusterError
from muster.domain.fleet.access import EnrolledNode, IssuedJoinToken
from muster.domain.ids import NodeId
from muster.trust.certificates import requested_key
from muster.trust.tokens import new_join_token, parse_join_token

JOIN_TTL = timedelta(hours=1)
"""How long a join token counts unless its maker says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTokenWish:
    """The join token that somebody asks for."""

    ttl: timedelta | None = None
    """How long it counts; None: an hour."""
    uses: int = 1
    """How many nodes may join with it."""
    labels: Mapping[str, str]
    """What the nodes carry that join with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedNode:
    """What a node gets that has joined; certificates as PEM."""

    certificate: bytes
    peer_certificate: bytes
    authorities: bytes


class EnrolmentOperations:
    """What callers may do with join tokens and with nodes that have joined."""

    def __init__(self, operations: Operations, nodes: JoinedNodes, authority: FleetAuthority | None) -> None:
        self._operations = operations
        self._nodes = nodes
        self._authority = authority

    async def create_token(self, caller: Caller, wish: JoinTokenWish) -> tuple[str, IssuedJoinToken]:
        """Make a join token; its secret, which nobody is told again, and what is known of it."""
        async with self._operations.begin(caller, "join_tokens.create") as operation:
            if self._authority is None:
                raise ConflictError(
                    "the nodes of `muster up` need no join token; start `muster-coordinator` for others"
                )
            secret, now = new_join_token(self._authority.fingerprint), wall_time()
            token = IssuedJoinToken(
                id=secret.id,
                created_by=caller.name,
                created_at=now,
                expires_at=now + (JOIN_TTL if wish.ttl is None else checked_ttl(wish.ttl)),
                uses_left=wish.uses,
                labels=wish.labels,
            )
            operation.target = token.id
            await self._nodes.add_token(secret, token, operation.done())
            return str(secret), token

    async def list_tokens(self, caller: Caller) -> Sequence[IssuedJoinToken]:
        """Join tokens, oldest first."""
        async with self._operations.begin(caller, "join_tokens.list"):
            return sorted((stored.token for stored in self._nodes.tokens.values()), key=_age)

    async def revoke_token(self, caller: Caller, token: str) -> IssuedJoinToken:
        """Have a join token count no more; nodes that have joined with it stay."""
        async with self._operations.begin(caller, "join_tokens.revoke", token) as operation:
            return await self._nodes.revoke_token(token, wall_time(), operation.done())

    async def nodes(self, caller: Caller) -> Sequence[EnrolledNode]:
        """Nodes that have joined, by name."""
        async with self._operations.begin(caller, "nodes.enrolled"):
            return [node for _, node in sorted(self._nodes.by_name.items())]

    async def revoke_node(self, caller: Caller, node: NodeId) -> EnrolledNode:
        """Send a node away: its certificate counts no more."""
        async with self._operations.begin(caller, "nodes.revoke", node) as operation:
            return await self._nodes.revoke(node, wall_time(), operation.done())


class JoinOperations:
    """What strangers may do who have a join token."""

    def __init__(self, operations: Operations, nodes: JoinedNodes, authority: FleetAuthority) -> None:
        self._operations = operations
        self._nodes = nodes
        self.authority = authority
        """The authority whose certificate a node is to pin."""

    async def join(self, caller: Caller, node: NodeId, token: str, request: bytes) -> JoinedNode:
        """Take a node in on a token and certify the key of its request; raises RefusedError."""
        async with self._operations.begin(caller, "nodes.join", node) as operation:
            try:
                shown, now = parse_join_token(token), wall_time()
                self._nodes.token(shown)  # before anything is signed for a stranger
                epoch, joined = self.authority.rotation.epoch, self._certified(request, node, now)
                done = operation.done(f"join token {shown.id}")
                await self._nodes.enrol(shown, node, requested_key(request), done, epoch)
            except RefusedError as error:
                operation.refused(error.cause)
                raise
            except MusterError as error:
                operation.refused(type(error).__name__)
                raise
            return joined

    async def note_unreadable(self, caller: Caller, node: str, error: MusterError) -> None:
        """Write down that a request to join could not be read."""
        async with self._operations.begin(caller, "nodes.join", node) as operation:
            operation.refused(type(error).__name__)

    def _certified(self, request: bytes, node: NodeId, now: datetime) -> JoinedNode:
        return JoinedNode(
            certificate=self.authority.certify(request, node, now),
            peer_certificate=self.authority.certify_peer(request, node, now),
            authorities=self.authority.trusted,
        )


def _age(token: IssuedJoinToken) -> datetime:
    return token.created_at
