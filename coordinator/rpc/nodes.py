"""The clients' side: nodes."""

from itertools import islice
from typing import Any

import grpc.aio

from coordinator import views
from coordinator.core.answers import Refused
from coordinator.core.events import RemovalRequested
from coordinator.engine import Engine
from coordinator.rpc.refusals import refuse, translated
from muster import wire
from muster.domain.errors import InvalidJobError
from muster.domain.ids import NodeId
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1 import nodes_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]

PAGE = 1000


class NodeService(nodes_pb2_grpc.NodeServiceServicer):
    """Look at nodes, and give up those that will not come back."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @translated
    async def List(self, request: pb.ListNodesRequest, context: Context) -> pb.ListNodesResponse:  # noqa: ARG002, N802
        """A page of nodes in natural order."""
        if request.page_token and not request.page_token.isdecimal():
            raise InvalidJobError(f"{request.page_token!r} is not a page token of this service")
        start, size = int(request.page_token or 0), min(request.page_size or PAGE, PAGE)
        page = await self._engine.read(
            lambda cluster, _: list(islice(views.node_views(cluster), start, start + size + 1))
        )
        return pb.ListNodesResponse(
            nodes=[wire.node_to_wire(view) for view in page[:size]],
            next_page_token=str(start + size) if len(page) > size else "",
        )

    @translated
    async def Get(self, request: pb.GetNodeRequest, context: Context) -> pb.Node:  # noqa: ARG002, N802
        """One node."""
        view = await self._engine.read(lambda cluster, _: views.node_view(cluster, NodeId(request.node)))
        return wire.node_to_wire(view)

    @translated
    async def Remove(self, request: pb.RemoveNodeRequest, context: Context) -> pb.RemoveNodeResponse:  # noqa: N802
        """Give a node up; answers with what was known of it."""
        node = NodeId(request.node)
        view = await self._engine.read(lambda cluster, _: views.node_view(cluster, node))
        answer = await self._engine.ask(RemovalRequested(node=node))
        if isinstance(answer, Refused):
            await refuse(context, answer)
        return pb.RemoveNodeResponse(node=wire.node_to_wire(view))
