"""Operations on what jobs have saved: who may see it, how they get it, and which of it stays."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from coordinator.clock import wall_time
from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.data_events import CheckpointOrdered
from coordinator.core.records import Job
from coordinator.engine.engine import Engine
from coordinator.service.causes import answer_to
from coordinator.service.data.trees import DepotSide
from coordinator.service.finding import resolved
from coordinator.service.operations import Operation, Operations
from coordinator.trust.caller import Caller
from coordinator.views.checkpoints import checkpoint_store, checkpoint_view, job_checkpoints, resolved_checkpoint
from muster.domain.data.checkpoint import (
    CheckpointId,
    CheckpointOrder,
    CheckpointParts,
    CheckpointPartView,
    CheckpointView,
    JobCheckpoints,
    part_directory,
)
from muster.domain.ids import JobId

PARTS_PAGE = 500
"""Ranks whose parts of a checkpoint are told in one answer."""


class CheckpointOperations:
    """What callers may do with what jobs have saved; jobs are named as for all operations on them."""

    def __init__(self, operations: Operations, engine: Engine, depot: DepotSide | None) -> None:
        self._operations = operations
        self._engine = engine
        self._depot = depot

    async def list(self, caller: Caller, name: str) -> JobCheckpoints:
        """All checkpoints of a job, whole or not, the newest first."""

        def read(cluster: Cluster, _: datetime) -> JobCheckpoints:
            return job_checkpoints(cluster, resolved(operation, cluster, name))

        async with self._operations.begin(caller, "checkpoints.list", name) as operation:
            return await self._engine.query(read)

    async def parts(
        self, caller: Caller, name: str, checkpoint: CheckpointId, *, ranks: Collection[int] = (), first: int = 0
    ) -> tuple[CheckpointParts, int]:
        """The parts of a checkpoint from rank `first` on, and the rank with which the next page begins.

        Attempt 0: the newest that has one of this name; no name: the newest whole one; no `ranks`: all. The second is
        0 where there is no other page.
        """

        def read(cluster: Cluster, _: datetime) -> tuple[CheckpointParts, str, int]:
            job, id_ = _named(operation, cluster, name, checkpoint)
            record, parts = cluster.jobs[job], _parts(cluster, job, id_, ranks, first)
            following = parts[PARTS_PAGE].rank if len(parts) > PARTS_PAGE else 0
            found = CheckpointParts(
                job=job,
                job_name=record.spec.name,
                checkpoint=checkpoint_view(cluster, job, id_),
                depot="",
                parts=tuple(
                    CheckpointPartView(
                        rank=each.rank,
                        files=each.files,
                        bytes=each.bytes,
                        tree=each.tree,
                        size=each.size,
                        store=_store(record, each),
                    )
                    for each in parts[:PARTS_PAGE]
                ),
            )
            return found, record.spec.project, following

        async with self._operations.begin(caller, "checkpoints.get", name) as operation:
            found, project, following = await self._engine.query(read)
            return self._with_ways(found, caller, project), following

    async def pin(self, caller: Caller, name: str, checkpoint: CheckpointId) -> CheckpointView:
        """Keep a checkpoint, attempt 0 as above, until it is unpinned; the checkpoint as it is then."""
        async with self._operations.begin(caller, "checkpoints.pin", name) as operation:
            return replace(await self._ordered(operation, name, checkpoint, CheckpointOrder.PIN), pinned=True)

    async def unpin(self, caller: Caller, name: str, checkpoint: CheckpointId) -> CheckpointView:
        """Keep a checkpoint no longer than others; it goes at once if there are enough newer ones."""
        async with self._operations.begin(caller, "checkpoints.unpin", name) as operation:
            return replace(await self._ordered(operation, name, checkpoint, CheckpointOrder.UNPIN), pinned=False)

    async def remove(self, caller: Caller, name: str, checkpoint: CheckpointId) -> CheckpointView:
        """Remove a checkpoint, whole or not; the checkpoint as it was."""
        async with self._operations.begin(caller, "checkpoints.remove", name) as operation:
            return await self._ordered(operation, name, checkpoint, CheckpointOrder.REMOVE)

    async def _ordered(
        self, operation: Operation, name: str, checkpoint: CheckpointId, order: CheckpointOrder
    ) -> CheckpointView:
        """The checkpoint as it was before an order; raises an error if the order was refused."""

        def find(cluster: Cluster, _: datetime) -> tuple[JobId, CheckpointView]:
            job, id_ = _named(operation, cluster, name, checkpoint)
            return job, checkpoint_view(cluster, job, id_)

        job, view = await self._engine.query(find)
        await answer_to(
            self._engine, CheckpointOrdered(job=job, checkpoint=view.id, order=order, cause=operation.cause)
        )
        return view

    def _with_ways(self, found: CheckpointParts, caller: Caller, project: str) -> CheckpointParts:
        """The same with what opens the depot, if one is there."""
        if self._depot is None or self._depot.address is None:
            return found
        give, now = self._depot.get_ticket, wall_time()
        parts = (
            replace(each, ticket=give(each.tree, project=project, account=caller.name, now=now)) if each.tree else each
            for each in found.parts
        )
        return replace(found, depot=self._depot.address, parts=tuple(parts))


def _named(operation: Operation, cluster: Cluster, name: str, checkpoint: CheckpointId) -> tuple[JobId, CheckpointId]:
    """The job and the checkpoint that the caller of an operation means, which the audit log then names."""
    job = resolved(operation, cluster, name)
    found = resolved_checkpoint(cluster, job, checkpoint).id
    operation.target = f"{job} {found}"
    return job, found


def _store(job: Job, part: CheckpointPart) -> str:
    """The place in a store where the files of a part lie; empty: in the depot, or nowhere."""
    below = checkpoint_store(job, part.attempt, part.rank)
    return f"{below}/{part_directory(part.tree)}" if below and part.tree else ""


def _parts(
    cluster: Cluster, job: JobId, checkpoint: CheckpointId, ranks: Collection[int], first: int
) -> Sequence[CheckpointPart]:
    """The parts of some ranks, or of all, from one rank on."""
    saved = cluster.gangs.checkpoints.get(job, checkpoint)
    assert saved is not None, "it was just found"
    return [part for rank, part in sorted(saved.parts.items()) if rank >= first and (not ranks or rank in ranks)]
