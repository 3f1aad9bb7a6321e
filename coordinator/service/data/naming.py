"""The trees that jobs name: told to the depot, which removes all others and tells what it holds."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Protocol

from coordinator.clock import wall_time
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import FleetChanged
from coordinator.core.records import Job
from coordinator.depot.messages import DepotHolds, DepotSwept
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.data.trees import DepotSide, trees_of
from coordinator.views.outputs import outputs_now
from muster.domain.data.depot_use import DepotUse, ProjectHolding
from muster.domain.event import FleetEventKind
from muster.domain.ids import AttemptId, JobId
from muster.domain.quantity import counted, size_text

log = logging.getLogger(__name__)

JOBS_NAMED_AT_ONCE = 2_000
"""Jobs whose trees are collected before others have their turn."""


class DepotNaming(Protocol):
    """The depot, as far as it is told names."""

    asked: asyncio.Event
    """Set while the depot wants to be told all names."""

    def name(self, trees: Mapping[str, Collection[str]]) -> None:
        """Tell the depot all trees that jobs name, by project."""
        ...


@asynccontextmanager
async def naming_trees(engine: Engine, depot: DepotNaming) -> AsyncIterator[None]:
    """Tell the depot which trees jobs name, whenever it asks, while the block runs."""
    naming = asyncio.get_running_loop().create_task(_name_trees(engine, depot), name="trees that jobs name")
    try:
        yield
    finally:
        naming.cancel()
        await asyncio.wait({naming})


async def _name_trees(engine: Engine, depot: DepotNaming) -> None:
    """Tell names until cancelled, or until the engine has ended.

    A job that comes meanwhile may be left out: its tree was kept when it was submitted, for longer than names count.
    """
    while True:
        await depot.asked.wait()
        jobs = await engine.query(lambda cluster, _: tuple(cluster.jobs))
        named: dict[str, set[str]] = {}
        for at in range(0, len(jobs), JOBS_NAMED_AT_ONCE):
            some = jobs[at : at + JOBS_NAMED_AT_ONCE]
            for project, trees in (await engine.query(_named_by(some), after=Freshness.COMMITTED)).items():
                named.setdefault(project, set()).update(trees)
            await asyncio.sleep(0)
        depot.name(named)


def _named_by(jobs: Sequence[JobId]) -> "_Question":
    def read(cluster: Cluster, now: datetime) -> Mapping[str, set[str]]:
        named: dict[str, set[str]] = {}
        for each in jobs:
            job = cluster.jobs.get(each)
            if job is not None and (trees := {*trees_of(job.spec), *_left_by(cluster, job, now)}):
                named.setdefault(job.spec.project, set()).update(trees)
        return named

    return read


def _left_by(cluster: Cluster, job: Job, now: datetime) -> Iterator[str]:
    """The trees of what the executions of a job have left and are to be kept, as far as these are at hand."""
    for number in range(1, job.attempt + 1):
        for member in cluster.gangs.members(AttemptId(job.id, number)):
            outputs = outputs_now(job, member, now)
            if outputs is not None and outputs.tree:
                yield outputs.tree


class _Question(Protocol):
    def __call__(self, cluster: Cluster, now: datetime, /) -> Mapping[str, set[str]]: ...


class DepotBook:
    """Writes down what the depot held when it was looked through last, and tells the fleet what went."""

    def __init__(self, engine: Engine, depot: DepotSide) -> None:
        self._engine = engine
        self._depot = depot
        self._telling: asyncio.Task[None] | None = None

    def swept(self, held: Iterable[DepotHolds], swept: DepotSwept) -> None:
        """Note what the depot says that it holds; what it has removed becomes an event of the fleet."""
        self._depot.use = DepotUse(
            at=wall_time(),
            projects={
                each.project: ProjectHolding(trees=each.trees, objects=each.objects, bytes=each.bytes) for each in held
            },
            objects=swept.objects,
            bytes=swept.bytes,
            unnamed_objects=swept.unnamed_objects,
            unnamed_bytes=swept.unnamed_bytes,
            removed_objects=swept.removed_objects,
            removed_bytes=swept.removed_bytes,
        )
        if swept.removed_objects:
            text = f"{counted(swept.removed_objects, 'object')}, {size_text(swept.removed_bytes)}"
            log.info("the depot has removed what no job names", extra={"removed": text})
            event = FleetChanged(kind=FleetEventKind.DEPOT_SWEPT, text=text)
            self._telling = asyncio.get_running_loop().create_task(self._engine.post(event), name="depot swept")
