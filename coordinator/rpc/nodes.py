"""The clients' side: nodes."""

from dataclasses import replace
from itertools import islice
from typing import Any

import grpc.aio

from coordinator import views
from coordinator.clock import wall_time
from coordinator.core.answers import Refused
from coordinator.core.cluster import Cluster
from coordinator.core.events import CordonRequested, NodeLabelled, RemovalRequested, UncordonRequested
from coordinator.engine import Engine
from coordinator.rpc.callers import caller, entry
from coordinator.rpc.jobs import page_token
from coordinator.rpc.refusals import refuse, translated
from coordinator.trust.audit import shortened
from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.registry import Registry
from muster import wire
from muster.domain.access import Access
from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.ids import NodeId
from muster.domain.node import NodeView
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1 import nodes_pb2_grpc
from muster.wire import checks
from muster.wire.nodes import given_labels

Context = grpc.aio.ServicerContext[Any, Any]

PAGE = 1000
REASON = 200
"""Longest reason for a cordon."""


class NodeService(nodes_pb2_grpc.NodeServiceServicer):
    """Look at nodes, and give up those that will not come back."""

    def __init__(self, engine: Engine, registry: Registry) -> None:
        self._engine = engine
        self._registry = registry

    @translated
    async def List(self, request: pb.ListNodesRequest, context: Context) -> pb.ListNodesResponse:  # noqa: ARG002, N802
        """A page of nodes in natural order."""
        start, size = page_token(request.page_token) or 0, min(request.page_size or PAGE, PAGE)
        who = caller()
        page = await self._engine.read(
            lambda cluster, _: [
                _for(who, cluster, view) for view in islice(views.node_views(cluster), start, start + size + 1)
            ]
        )
        return pb.ListNodesResponse(
            nodes=[wire.node_to_wire(view) for view in page[:size]],
            next_page_token=str(start + size) if len(page) > size else "",
        )

    @translated
    async def Get(self, request: pb.GetNodeRequest, context: Context) -> pb.Node:  # noqa: ARG002, N802
        """One node."""
        who = caller()
        view = await self._engine.read(
            lambda cluster, _: _for(who, cluster, views.node_view(cluster, NodeId(request.node)))
        )
        return wire.node_to_wire(view)

    @translated
    async def Remove(self, request: pb.RemoveNodeRequest, context: Context) -> pb.RemoveNodeResponse:  # noqa: N802
        """Give a node up, and let its certificate count no more; answers with what was known of it."""
        node = NodeId(request.node)
        view = await self._engine.read(lambda cluster, _: views.node_view(cluster, node))
        answer = await self._engine.ask(RemovalRequested(node=node))
        if isinstance(answer, Refused):
            await refuse(context, answer)
        if node in self._registry.nodes:
            done = entry(context, "/muster.rpc.v1.NodeService/Remove", node, "ok, certificate revoked", wall_time())
            await self._registry.revoke_node(node, wall_time(), done)
        return pb.RemoveNodeResponse(node=wire.node_to_wire(view))

    @translated
    async def Cordon(self, request: pb.CordonNodeRequest, context: Context) -> pb.Node:  # noqa: N802
        """Place nothing new on a node; the node as it is then."""
        if len(request.reason) > REASON:
            raise InvalidJobError(f"the reason has {len(request.reason)} characters; {REASON} are kept")
        checks.plain(request.reason, "CordonNodeRequest.reason")
        node = NodeId(request.node)
        return await self._told(
            CordonRequested(node=node, reason=request.reason, restart_jobs=request.restart_jobs), node, context
        )

    @translated
    async def Uncordon(self, request: pb.UncordonNodeRequest, context: Context) -> pb.Node:  # noqa: N802
        """Place on a node again; the node as it is then."""
        node = NodeId(request.node)
        return await self._told(UncordonRequested(node=node), node, context)

    @translated
    async def Label(self, request: pb.LabelNodeRequest, context: Context) -> pb.LabelNodeResponse:  # noqa: N802
        """Give a node labels or take some away; effective for what is placed from now on."""
        if caller().kind is CallerKind.LOCAL:
            raise ConflictError("nodes of `muster up` have the labels with which their agent was started")
        node, checked = NodeId(request.node), given_labels(request.labels, "LabelNodeRequest.labels")
        checks.few(request.removed, "LabelNodeRequest.removed")
        before = self._registry.labels_of(node)
        words = [*(f"{name}={value}" for name, value in sorted(checked.items())), *(f"{n}-" for n in request.removed)]
        method = "/muster.rpc.v1.NodeService/Label"
        done = shortened(entry(context, method, node, f"ok, {' '.join(words)}", wall_time()))
        labels = await self._registry.label_node(node, checked, request.removed, done)
        await self._engine.ask(NodeLabelled(node=node, labels=labels))
        return pb.LabelNodeResponse(labels=labels, changed=labels != before)

    async def _told(self, event: CordonRequested | UncordonRequested, node: NodeId, context: Context) -> pb.Node:
        answer = await self._engine.ask(event)
        if isinstance(answer, Refused):
            await refuse(context, answer)
        return wire.node_to_wire(await self._engine.read(lambda cluster, _: views.node_view(cluster, node)))


def _for(who: Caller, cluster: Cluster, view: NodeView) -> NodeView:
    """What somebody may know of a node: of executions only those of his projects."""
    if who.may(Access.VIEWER):
        return view
    jobs = cluster.jobs
    seen = [
        execution
        for execution in view.executions
        if who.may(Access.VIEWER, jobs[cluster.executions[execution].job].spec.project)
    ]
    return replace(view, executions=tuple(seen))
