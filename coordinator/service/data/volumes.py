"""Operations on volumes that nodes keep: who may see them, and who may remove one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.capacity import key_of
from coordinator.engine.engine import Engine
from coordinator.service.data.kept_volumes import KeptVolumeBook
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from coordinator.views.nodes import unknown_node
from coordinator.views.volumes import jobs_using
from muster.domain.data.volume import KeptVolume, KeptVolumeView, RemovalOutcome, VolumeId, no_kept_volume
from muster.domain.errors import ConflictError, UnavailableError, UnknownNameError
from muster.domain.fleet.access import Access, no_project
from muster.domain.ids import NodeId

VOLUMES_PAGE = 500
"""Kept volumes that are told in one answer."""
_USERS_NAMED = 5


class VolumeOperations:
    """What callers may do with the volumes that nodes keep."""

    def __init__(self, operations: Operations, engine: Engine, book: KeptVolumeBook) -> None:
        self._operations = operations
        self._engine = engine
        self._book = book

    async def list(
        self, caller: Caller, *, project: str = "", node: str = "", after: tuple[str, VolumeId] | None = None
    ) -> tuple[Sequence[KeptVolumeView], bool]:
        """Volumes of the projects that the caller may look at, by node, project and name, and whether more follow.

        Empty: of all projects, on all nodes. `after`: the last one of the page before.
        """

        def read(cluster: Cluster, _: datetime) -> Sequence[KeptVolumeView]:
            if node and NodeId(node) not in cluster.nodes:
                raise unknown_node(NodeId(node))
            self._book.forget_all_but(cluster.nodes)
            nodes = [NodeId(node)] if node else sorted(self._book.nodes(), key=key_of)
            found = (view for each in nodes for view in self._views(cluster, each, after))
            seen = (view for view in found if caller.may(Access.VIEWER, view.project) and project in {"", view.project})
            return [_with_users(cluster, view) for view in islice(seen, VOLUMES_PAGE + 1)]

        async with self._operations.begin(caller, "volumes.list"):
            if project and not caller.may(Access.VIEWER, project):
                raise UnknownNameError(no_project(project))
            found = await self._engine.query(read)
            return found[:VOLUMES_PAGE], len(found) > VOLUMES_PAGE

    async def remove(self, caller: Caller, node: str, volume: VolumeId) -> KeptVolumeView:
        """Remove one volume from one node; the volume as it was.

        Raises ConflictError while a job uses it, and UnavailableError where the node cannot be told.
        """

        def find(cluster: Cluster, _: datetime) -> KeptVolumeView:
            if name not in cluster.nodes:
                raise unknown_node(name)
            kept = self._book.get(name, volume)
            if kept is None:
                raise UnknownNameError(no_kept_volume(name, volume))
            return _with_users(cluster, self._view(name, kept))

        name = NodeId(node)
        async with self._operations.begin(caller, "volumes.remove", f"{node} {volume}") as operation:
            operation.require_access(volume.project)
            view = await self._engine.query(find)
            if view.jobs:
                named = ", ".join(view.jobs[:_USERS_NAMED]) + (", …" if len(view.jobs) > _USERS_NAMED else "")
                raise ConflictError(f"the volume {volume} of node {node} is in use by {named}; stop that first")
            said = await self._book.remove(name, volume)
            match said.outcome:
                case RemovalOutcome.REMOVED:
                    return view
                case RemovalOutcome.IN_USE:
                    raise ConflictError(
                        f"the volume {volume} of node {node} is in use by the executions {said.why}, or they are just "
                        "being cleared away; try again in a moment"
                    )
                case RemovalOutcome.UNKNOWN:
                    raise UnknownNameError(no_kept_volume(name, volume))
                case RemovalOutcome.FAILED:
                    raise UnavailableError(f"node {node} could not remove the volume {volume}: {said.why}")

    def _views(self, cluster: Cluster, node: NodeId, after: tuple[str, VolumeId] | None) -> Iterator[KeptVolumeView]:
        """What a node keeps, without the jobs that use it."""
        if node not in cluster.nodes:
            return
        for kept in self._book.of(node):
            if after is None or (key_of(node), kept.id) > (key_of(NodeId(after[0])), after[1]):
                yield self._view(node, kept)

    def _view(self, node: NodeId, kept: KeptVolume) -> KeptVolumeView:
        """A volume without the jobs that use it."""
        return KeptVolumeView(
            node=node,
            project=kept.id.project,
            name=kept.id.name,
            bytes=kept.bytes,
            used_at=kept.used_at,
            connected=self._book.is_connected(node),
        )


def _with_users(cluster: Cluster, view: KeptVolumeView) -> KeptVolumeView:
    return replace(view, jobs=tuple(jobs_using(cluster, NodeId(view.node), VolumeId(view.project, view.name))))
