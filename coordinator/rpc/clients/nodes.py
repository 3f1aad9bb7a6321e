"""The clients' calls about nodes, as gRPC has them."""

import asyncio
from contextlib import aclosing
from datetime import timedelta

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.clients.jobs import READER_PATIENCE
from coordinator.rpc.refusals import translated
from coordinator.rpc.streams import offer, streaming
from coordinator.service.nodes import NodeOperations
from coordinator.service.stories import StoryOperations, StoryWish
from muster import wire
from muster.domain.ids import NodeId
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1 import nodes_pb2_grpc
from muster.wire import checks
from muster.wire.nodes import given_labels, taint_from_wire, taint_name_from_wire


class NodeService(nodes_pb2_grpc.NodeServiceServicer):
    """Translates calls about nodes."""

    def __init__(self, nodes: NodeOperations, stories: StoryOperations, patience: float = READER_PATIENCE) -> None:
        self._nodes = nodes
        self._stories = stories
        self._patience = patience
        self.closing = asyncio.Event()

    @translated
    async def List(self, request: pb.ListNodesRequest, context: Context) -> pb.ListNodesResponse:
        """A page of nodes in natural order."""
        page = await self._nodes.list(caller(), page=request.page_token, size=request.page_size)
        return pb.ListNodesResponse(nodes=map(wire.node_to_wire, page.nodes), next_page_token=page.next_page)

    @translated
    async def Get(self, request: pb.GetNodeRequest, context: Context) -> pb.Node:
        """One node."""
        return wire.node_to_wire(await self._nodes.get(caller(), NodeId(request.node)))

    @translated
    async def Remove(self, request: pb.RemoveNodeRequest, context: Context) -> pb.RemoveNodeResponse:
        """Give a node up, and let its certificate count no more; answers with what was known of it."""
        view = await self._nodes.remove(caller(), NodeId(request.node))
        return pb.RemoveNodeResponse(node=wire.node_to_wire(view))

    @translated
    async def Cordon(self, request: pb.CordonNodeRequest, context: Context) -> pb.Node:
        """Place nothing new on a node; the node as it is then."""
        reason = checks.plain(request.reason, "CordonNodeRequest.reason")
        view = await self._nodes.cordon(
            caller(), NodeId(request.node), reason=reason, restart_jobs=request.restart_jobs
        )
        return wire.node_to_wire(view)

    @translated
    async def Uncordon(self, request: pb.UncordonNodeRequest, context: Context) -> pb.Node:
        """Place on a node again; the node as it is then."""
        return wire.node_to_wire(await self._nodes.uncordon(caller(), NodeId(request.node)))

    @translated
    async def Label(self, request: pb.LabelNodeRequest, context: Context) -> pb.LabelNodeResponse:
        """Give a node labels or take some away; effective for what is placed from now on."""
        given = given_labels(request.labels, "LabelNodeRequest.labels")
        checks.few(request.removed, "LabelNodeRequest.removed")
        now = await self._nodes.label(caller(), NodeId(request.node), given, request.removed)
        return pb.LabelNodeResponse(labels=now.labels, changed=now.changed)

    @translated
    async def Taint(self, request: pb.TaintNodeRequest, context: Context) -> pb.Node:
        """Give a node taints or take some away; the node as it is then."""
        checks.few(request.given, "TaintNodeRequest.given")
        checks.few(request.removed, "TaintNodeRequest.removed")
        view = await self._nodes.taint(
            caller(),
            NodeId(request.node),
            tuple(map(taint_from_wire, request.given)),
            tuple(map(taint_name_from_wire, request.removed)),
            after=checks.optional_span(request, "after") or timedelta(),
        )
        return wire.node_to_wire(view)

    @streaming
    async def Events(self, request: pb.NodeEventsRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """What happened to a node, oldest first; with `follow` until the caller leaves."""
        after = checks.between(request.after, 0, checks.MAX_BYTES, "NodeEventsRequest.after")
        wish = StoryWish(after=after, most=request.limit, follow=request.follow)
        async with aclosing(self._stories.of_node(caller(), NodeId(request.node), wish)) as pages:
            async for events in pages:
                await offer(context, pb.NodeEvents(events=map(wire.node_event_to_wire, events)), self._patience)
