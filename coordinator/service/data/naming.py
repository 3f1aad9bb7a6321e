"""The trees that jobs name: told to the depot, which removes all others and tells what it holds."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from coordinator.clock import wall_time
from coordinator.core.attempts.history import in_store_alone
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import FleetChanged
from coordinator.core.records import Execution, Job
from coordinator.depot.messages import DepotHolds, DepotSwept
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.archive import StoredPast
from coordinator.service.data.trees import DepotSide, trees_of
from coordinator.views.outputs import outputs_now
from muster.domain.data.depot_use import DepotUse, ProjectHolding
from muster.domain.errors import ExhaustedError
from muster.domain.event import FleetEventKind
from muster.domain.ids import AttemptId, JobId
from muster.domain.quantity import counted, size_text

log = logging.getLogger(__name__)

JOBS_NAMED_AT_ONCE = 2_000
"""Jobs whose trees are collected before others have their turn."""

NAMED_AGAIN_AFTER = 60.0
"""Seconds until old attempts are read again which could not be read."""


class DepotNaming(Protocol):
    """The depot, as far as it is told names."""

    asked: asyncio.Event
    """Set while the depot wants to be told all names."""

    def name(self, trees: Mapping[str, Collection[str]]) -> None:
        """Tell the depot all trees that jobs name, by project."""
        ...


@asynccontextmanager
async def naming_trees(engine: Engine, depot: DepotNaming, past: StoredPast) -> AsyncIterator[None]:
    """Tell the depot which trees jobs name, whenever it asks, while the block runs; `past` is closed at the end."""
    naming = asyncio.get_running_loop().create_task(_name_trees(engine, depot, past), name="trees that jobs name")
    try:
        yield
    finally:
        naming.cancel()
        await asyncio.wait({naming})
        past.close()


async def _name_trees(engine: Engine, depot: DepotNaming, past: StoredPast) -> None:
    """Tell names until cancelled, or until the engine has ended.

    A job that comes meanwhile may be left out: its tree was kept when it was submitted, for longer than names count.
    """
    while True:
        await depot.asked.wait()
        try:
            named = await named_trees(engine, past)
        except ExhaustedError as error:  # what is not named is removed, so all names are told or none
            log.warning("the depot cannot be told yet what jobs name", extra={"cause": str(error)})
            await asyncio.sleep(NAMED_AGAIN_AFTER)
        else:
            depot.name(named)


async def named_trees(engine: Engine, past: StoredPast) -> Mapping[str, Collection[str]]:
    """All trees that jobs name, by project. Raises ExhaustedError where old attempts cannot be read."""
    jobs = await engine.query(lambda cluster, _: tuple(cluster.jobs))
    named: dict[str, set[str]] = {}
    for at in range(0, len(jobs), JOBS_NAMED_AT_ONCE):
        some = jobs[at : at + JOBS_NAMED_AT_ONCE]
        for each in await engine.query(_named_by(some), after=Freshness.COMMITTED):
            trees = named.setdefault(each.job.spec.project, set())
            trees.update(each.trees)
            for attempt in each.old:
                left = await past.executions(each.job.id, attempt)
                trees.update(_kept_of(each.job, left, each.now))
        await asyncio.sleep(0)
    return {project: trees for project, trees in named.items() if trees}


@dataclass(frozen=True, slots=True)
class _NamedByJob:
    """The trees that a job names, as far as they are at hand."""

    job: Job
    now: datetime
    trees: Collection[str]
    old: Sequence[int]
    """Attempts whose executions only the store has."""


def _named_by(jobs: Sequence[JobId]) -> "_Question":
    def read(cluster: Cluster, now: datetime) -> Sequence[_NamedByJob]:
        found = []
        for each in jobs:
            job = cluster.jobs.get(each)
            if job is None:
                continue
            attempts = [cluster.attempts[AttemptId(each, number)] for number in range(1, job.attempt + 1)]
            old = tuple(in_store_alone(job, {attempt.number for attempt in attempts if attempt.executions_dropped}))
            trees = {*trees_of(job.spec), *_left_by(cluster, job, now)}
            if trees or old:
                found.append(_NamedByJob(job, now, trees, old))
        return found

    return read


def _kept_of(job: Job, members: Iterable[Execution], now: datetime) -> Iterator[str]:
    """The trees of what these executions of a job have left and are to be kept."""
    for member in members:
        outputs = outputs_now(job, member, now)
        if outputs is not None and outputs.tree:
            yield outputs.tree


def _left_by(cluster: Cluster, job: Job, now: datetime) -> Iterator[str]:
    """The trees of what the executions of a job have saved, or left and are to be kept, as far as these are at hand."""
    for saved in cluster.gangs.checkpoints.of(job.id):
        yield from (part.tree for part in saved.parts.values() if part.tree)
    for number in range(1, job.attempt + 1):
        yield from _kept_of(job, cluster.gangs.members(AttemptId(job.id, number)), now)


class _Question(Protocol):
    def __call__(self, cluster: Cluster, now: datetime, /) -> Sequence[_NamedByJob]: ...


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
