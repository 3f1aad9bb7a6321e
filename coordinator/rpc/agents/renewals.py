"""How nodes come to their next certificates: each asks in its own time, and is asked to when the authority changes."""

import asyncio

from coordinator.clock import wall_time
from coordinator.rpc.agents.downlink import Downlink
from coordinator.service.operations import audit_entry
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.caller import Caller
from coordinator.trust.joined_nodes import JoinedNodes
from muster.domain.errors import PermissionDeniedError
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.trust.certificates import requested_key

RENEWALS = 25
"""Nodes that are asked to renew in one second when the authority changes; each takes some milliseconds of signing."""


class Renewals:
    """The nodes that are connected, and what each has to learn of the fleet's authority."""

    def __init__(self, nodes: JoinedNodes, authority: FleetAuthority | None) -> None:
        """`authority`: None in a fleet without certificates, where nobody renews anything."""
        self._nodes = nodes
        self._authority = authority
        self._streams: dict[NodeId, Downlink] = {}
        """The stream to each node that is connected."""
        self._asking: asyncio.Task[None] | None = None
        if authority is not None:
            authority.on_change.append(self._ask_all)

    async def connected(self, node: NodeId, down: Downlink) -> None:
        """Ask a node over its new stream if it has to renew, and from now on whenever it has to."""
        self._streams[node] = down
        await self._ask(node, down)

    def disconnected(self, node: NodeId, down: Downlink) -> None:
        """Forget a stream; a newer one of the same node stays."""
        if self._streams.get(node) is down:
            del self._streams[node]

    async def renewed(self, who: Caller, request: bytes) -> pb.RenewResponse:
        """The next certificate of a node, as a rule for another key than that of the present one."""
        if self._authority is None or who.node is None:
            raise PermissionDeniedError("only a node that has joined has a certificate to renew")
        now, key = wall_time(), requested_key(request)
        epoch, authorities = self._authority.rotation.epoch, self._authority.trusted
        answer = pb.RenewResponse(
            certificate=self._authority.certify(request, who.node, now),
            peer_certificate=self._authority.certify_peer(request, who.node, now),
            authorities=authorities,
        )
        if key != who.key:
            # The key of before counts until the new one is shown, as this answer may get lost.
            entry = audit_entry(who, "agents.renew", who.node, "ok, another key")
            await self._nodes.offer_key(who.node, key, epoch, entry)
        return answer

    async def settle(self, who: Caller) -> None:
        """A node that shows its new key has kept it, with the authorities that came with it."""
        known = None if who.node is None else self._nodes.by_name.get(who.node)
        if known is not None and known.next_key == who.key:
            entry = audit_entry(who, "agents.connect", known.name, "ok, the key of before counts no more")
            await self._nodes.settle_key(known.name, who.key, entry)

    def _ask_all(self) -> None:
        """Other authorities count than before."""
        self._asking = asyncio.get_running_loop().create_task(self._ask_each(), name="ask nodes to renew")

    async def _ask_each(self) -> None:
        # Each waits for its own agent to read; what ends meanwhile is asked when it is back.
        asked = [self._ask(node, down) for node, down in self._streams.items()]
        await asyncio.gather(*asked, return_exceptions=True)

    async def _ask(self, node: NodeId, down: Downlink) -> None:
        """Ask a node that has not learned of the last change of the authorities; others are left alone."""
        known = self._nodes.by_name.get(node)
        if self._authority is None or known is None or known.epoch >= self._authority.rotation.epoch:
            return
        message = pb.RenewSoon()
        message.spread.FromMilliseconds(int(1000 * len(self._streams) / RENEWALS))
        await down.send(pb.CoordinatorMessage(renew_soon=message))
