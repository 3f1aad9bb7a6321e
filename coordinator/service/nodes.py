"""Operations on nodes: look at them, give up those that will not come back, and say what runs there."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice

from coordinator.clock import wall_time
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import (
    CordonRequested,
    NodeLabelled,
    RemovalRequested,
    TaintsRequested,
    UncordonRequested,
)
from coordinator.engine.engine import Engine
from coordinator.service.causes import answer_to
from coordinator.service.operations import Operations
from coordinator.service.pages import page_start
from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.joined_nodes import JoinedNodes
from coordinator.views.nodes import node_view, node_views
from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.fleet.access import Access
from muster.domain.fleet.node import NodeView
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.taint import Taint, TaintName
from muster.domain.jobs.placing.toleration import TaintEffect
from muster.domain.quantity import MAX_DURATION, TOO_LONG

NODES_PAGE = 1000
"""Most nodes of one page."""
REASON = 200
"""Most characters of a reason for a cordon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesPage:
    """Some nodes, and where the next ones are."""

    nodes: Sequence[NodeView]
    next_page: str = ""
    """Given back for the next page; empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabels:
    """Labels that tokens and operators have given a node."""

    labels: Mapping[str, str]
    changed: bool
    """Whether they are other ones than before the operation."""


class NodeOperations:
    """What callers may do with nodes."""

    def __init__(self, operations: Operations, engine: Engine, nodes: JoinedNodes) -> None:
        self._operations = operations
        self._engine = engine
        self._nodes = nodes

    async def list(self, caller: Caller, *, page: str = "", size: int = 0) -> NodesPage:
        """A page of nodes in natural order; `size` 0: as many as a page has at most."""
        async with self._operations.begin(caller, "nodes.list"):
            start, size = page_start(page) or 0, min(size or NODES_PAGE, NODES_PAGE)
            found = await self._engine.query(
                lambda cluster, _: [
                    _seen_by(caller, cluster, view) for view in islice(node_views(cluster), start, start + size + 1)
                ]
            )
            return NodesPage(nodes=found[:size], next_page=str(start + size) if len(found) > size else "")

    async def get(self, caller: Caller, node: NodeId) -> NodeView:
        """One node; raises UnknownNameError."""
        async with self._operations.begin(caller, "nodes.get", node):
            return await self._engine.query(lambda cluster, _: _seen_by(caller, cluster, node_view(cluster, node)))

    async def remove(self, caller: Caller, node: NodeId) -> NodeView:
        """Give a node up, and let its certificate count no more; the node as it was known."""
        async with self._operations.begin(caller, "nodes.remove", node) as operation:
            view = await self._view(node)
            await answer_to(self._engine, RemovalRequested(node=node, cause=operation.cause))
            if node in self._nodes.by_name:
                await self._nodes.revoke(node, wall_time(), operation.done("certificate revoked"))
            return view

    async def cordon(self, caller: Caller, node: NodeId, *, reason: str = "", restart_jobs: bool = False) -> NodeView:
        """Place nothing new on a node; the node as it is then."""
        async with self._operations.begin(caller, "nodes.cordon", node) as operation:
            if len(reason) > REASON:
                raise InvalidJobError(f"the reason has {len(reason)} characters; {REASON} are kept")
            cause = operation.cause
            await answer_to(
                self._engine, CordonRequested(node=node, reason=reason, restart_jobs=restart_jobs, cause=cause)
            )
            return await self._view(node)

    async def uncordon(self, caller: Caller, node: NodeId) -> NodeView:
        """Place on a node again; the node as it is then."""
        async with self._operations.begin(caller, "nodes.uncordon", node) as operation:
            await answer_to(self._engine, UncordonRequested(node=node, cause=operation.cause))
            return await self._view(node)

    async def label(
        self, caller: Caller, node: NodeId, given: Mapping[str, str], removed: Collection[str]
    ) -> NodeLabels:
        """Give a node labels or take some away; effective for what is placed from now on."""
        async with self._operations.begin(caller, "nodes.label", node) as operation:
            if caller.kind is CallerKind.LOCAL:
                raise ConflictError("nodes of `muster up` have the labels with which their agent was started")
            before = self._nodes.labels_of(node)
            words = [*(f"{name}={value}" for name, value in sorted(given.items())), *(f"{name}-" for name in removed)]
            labels = await self._nodes.label(node, given, removed, operation.done(" ".join(words)))
            await self._engine.apply(NodeLabelled(node=node, labels=labels, cause=operation.cause))
            return NodeLabels(labels=labels, changed=labels != before)

    async def taint(
        self,
        caller: Caller,
        node: NodeId,
        given: tuple[Taint, ...],
        removed: tuple[TaintName, ...],
        *,
        after: timedelta = timedelta(),
    ) -> NodeView:
        """Give a node taints or take some away; the node as it is then."""
        async with self._operations.begin(caller, "nodes.taint", node) as operation:
            if after and all(taint.effect is not TaintEffect.NO_EXECUTE for taint in given):
                raise InvalidJobError(f"a time is for taints with {TaintEffect.NO_EXECUTE} alone; others end nothing")
            if after > MAX_DURATION:
                raise InvalidJobError(f"the time {TOO_LONG}")
            event = TaintsRequested(node=node, given=given, removed=removed, after=after, cause=operation.cause)
            await answer_to(self._engine, event)
            return await self._view(node)

    async def _view(self, node: NodeId) -> NodeView:
        return await self._engine.query(lambda cluster, _: node_view(cluster, node))


def _seen_by(caller: Caller, cluster: Cluster, view: NodeView) -> NodeView:
    """What a caller may know of a node: of executions only those of projects that the caller sees."""
    if caller.may(Access.VIEWER):
        return view
    jobs = cluster.jobs
    seen = [
        execution
        for execution in view.executions
        if caller.may(Access.VIEWER, jobs[cluster.executions[execution].job].spec.project)
    ]
    return replace(view, executions=tuple(seen))
