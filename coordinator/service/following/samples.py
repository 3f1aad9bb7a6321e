"""What nodes and jobs use at the moment, as far as callers may see it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.finding import resolved
from coordinator.service.operations import Operations
from coordinator.service.watching.newest_samples import NewestSamples
from coordinator.trust.caller import Caller
from coordinator.views.nodes import unknown_node
from muster.domain.errors import MusterError
from muster.domain.fleet.access import Access
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.telemetry.sample import NodeSample, Sample, UnreadSample

log = logging.getLogger(__name__)

SAMPLES_PACE = 1.0
"""Seconds between two batches for one follower; what came meanwhile is in the next one."""
SAMPLES_AT_ONCE = 64
"""Samples that are read before others have their turn."""


SeenSample = NodeSample | UnreadSample
"""A sample as a caller may see it; as it came, where that is all of it."""


@dataclass(frozen=True, slots=True)
class _Share:
    """What somebody may see of samples now."""

    nodes: Collection[NodeId] | None
    """None: those of all nodes."""
    sees: Callable[[ExecutionId], bool]
    gpus: frozenset[GpuUuid] | None = None
    """None: those of all GPUs."""
    goes_on: bool = True
    """Whether there may be more."""
    exists: Callable[[ExecutionId], bool] | None = None
    """Says of an execution whether it exists, where all of it may be seen; None: some may not."""

    def of(self, sample: Sample) -> Sample:
        """The part of a sample that may be seen."""
        gpus = sample.gpus if self.gpus is None else [each for each in sample.gpus if each[0] in self.gpus]
        return replace(sample, gpus=gpus, executions=[each for each in sample.executions if self.sees(each[0])])


class SampleOperations:
    """What callers may ask about samples."""

    def __init__(
        self,
        operations: Operations,
        engine: Engine,
        newest: NewestSamples,
        read: Callable[[bytes], Sample],
        executions: Callable[[bytes], Sequence[ExecutionId]],
        pace: float = SAMPLES_PACE,
    ) -> None:
        """`read` reads a sample as it came from an agent, and `executions` only the names of those that it tells of.

        Both raise MusterError for what is none.
        """
        self._operations = operations
        self._engine = engine
        self._newest = newest
        self._read_one = read
        self._executions = executions
        self._pace = pace

    async def of_job(self, caller: Caller, name: str, *, follow: bool) -> AsyncGenerator[Sequence[SeenSample], None]:
        """The samples of the nodes of a job's newest attempt, cut down to what is the job's.

        With `follow` also those that come, until the job has ended.
        """
        async with self._operations.begin(caller, "jobs.samples", name) as operation:
            job = await self._engine.query(
                lambda cluster, _: resolved(operation, cluster, name), after=Freshness.COMMITTED
            )
            async with aclosing(self._batches(lambda cluster: _share_of_job(cluster, job), job, follow=follow)) as told:
                async for batch in told:
                    yield batch

    async def of_nodes(
        self, caller: Caller, nodes: Collection[NodeId], *, follow: bool
    ) -> AsyncGenerator[Sequence[SeenSample], None]:
        """The newest samples of these nodes, or of all where none is named; raises UnknownNameError.

        Of executions only those of projects that the caller sees. With `follow` also those that come, until the caller
        leaves.
        """
        async with self._operations.begin(caller, "nodes.samples", ", ".join(nodes)):
            await self._engine.query(lambda cluster, _: _require(cluster, nodes), after=Freshness.COMMITTED)

            def share(cluster: Cluster) -> _Share:
                exists = cluster.executions.__contains__ if caller.may(Access.VIEWER) else None
                return _Share(nodes or None, lambda each: _is_seen(caller, cluster, each), exists=exists)

            async with aclosing(self._batches(share, None, follow=follow)) as told:
                async for batch in told:
                    yield batch

    async def _batches(
        self, share_of: Callable[[Cluster], _Share], job: JobId | None, *, follow: bool
    ) -> AsyncGenerator[Sequence[SeenSample], None]:
        known, first = 0, True
        while True:
            share = self._engine.query_now(share_of)
            heard = () if job is None else (job,)
            with self._engine.signals.listen(*heard) as listener, self._newest.telling(listener, share.nodes):
                newest = self._newest.number
                found = list(self._newest.since(known, share.nodes))
                known = newest
                batch: list[SeenSample] = []
                for start in range(0, len(found), SAMPLES_AT_ONCE):
                    batch += self._read(found[start : start + SAMPLES_AT_ONCE], share)
                    await asyncio.sleep(0)
                if batch or first:
                    yield batch
                first = False
                if not follow or not share.goes_on:
                    return
                await asyncio.sleep(self._pace)
                await listener.wait()

    def _read(self, found: Sequence[tuple[NodeId, bytes]], share: _Share) -> Iterator[SeenSample]:
        """What may be seen of samples; bytes that are none are left out."""
        for node, data in found:
            try:
                if share.exists is not None and all(map(share.exists, self._executions(data))):
                    yield UnreadSample(node, data)
                else:
                    yield NodeSample(node, share.of(self._read_one(data)))
            except MusterError as error:
                log.warning("a node sends samples that cannot be read", extra={"node": node, "error": str(error)})


def _require(cluster: Cluster, nodes: Collection[NodeId]) -> None:
    for node in nodes:
        if node not in cluster.nodes:
            raise unknown_node(node)


def _is_seen(caller: Caller, cluster: Cluster, execution: ExecutionId) -> bool:
    """Whether a caller may know of an execution."""
    found = cluster.executions.get(execution)
    return found is not None and caller.may(Access.VIEWER, cluster.jobs[found.job].spec.project)


def _share_of_job(cluster: Cluster, job: JobId) -> _Share:
    if job not in cluster.jobs:
        return _Share((), lambda _: False, frozenset(), goes_on=False)
    members = cluster.gangs.members(AttemptId(job, cluster.jobs[job].attempt))
    there = {member.id: member for member in members if member.node is not None}
    return _Share(
        nodes=tuple(dict.fromkeys(member.node for member in there.values() if member.node is not None)),
        sees=there.__contains__,
        gpus=frozenset(gpu for member in there.values() for gpu in member.gpus),
        goes_on=not cluster.phase(job).ended,
    )
