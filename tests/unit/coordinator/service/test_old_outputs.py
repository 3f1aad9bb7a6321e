"""Outputs of attempts that only the store has: they can be fetched, and stay in the depot."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import cast

import pytest

from coordinator.core.attempts.history import is_whole
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.limits import Limits
from coordinator.core.records import Execution
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.archive import StoredPast
from coordinator.service.data.left import OutputOperations
from coordinator.service.data.naming import named_trees, naming_trees
from coordinator.store.records.memory import MemoryStore
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.errors import ExhaustedError
from muster.domain.fleet.access import Access
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, spec
from tests.unit.coordinator.service.callers import Trusted, of_all

AGAIN = spec(1, gpus=1, restarts=RestartPolicy(limit=1000))
DRAINED = Failure(kind=FailureKind.DRAINED, message="its node is drained", exit=Exit(code=1))
"""After this a job starts again at once."""


def tree(attempt: int) -> str:
    return f"{attempt:064x}"


def often(times: int, limits: Limits | None = None) -> tuple[World, JobId]:
    """A job that has started again so many times; each attempt has left something."""
    w = World(("a", 1))
    w.cluster.limits = limits or w.cluster.limits
    job = w.submit(AGAIN)
    for number in range(1, times + 1):
        w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
        outputs = ExecutionOutputs(stage=OutputsStage.STORED, tree=tree(number), size=90, files=1, bytes=7)
        w.tell(job, 0, Stage.EXITED, exit=DRAINED.exit, failure=DRAINED, log_complete=True, outputs=outputs)
    return w, job


class EngineOf:
    """Answers from a cluster, however fresh the answer is to be."""

    def __init__(self, w: World) -> None:
        self._world = w

    async def query(
        self, question: Callable[[Cluster, datetime], object], *, after: Freshness = Freshness.EVERYTHING
    ) -> object:
        del after
        return question(self._world.cluster, self._world.now)


def engine_of(w: World) -> Engine:
    return cast("Engine", EngineOf(w))


class Named:
    """A depot that asks once for names."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.asked.set()
        self.told: asyncio.Future[Mapping[str, Collection[str]]] = asyncio.get_running_loop().create_future()

    def name(self, trees: Mapping[str, Collection[str]]) -> None:
        self.asked.clear()
        self.told.set_result(trees)


class BrokenStore(MemoryStore):
    """A store whose old attempts cannot be read."""

    def executions(self, job: JobId, attempt: int) -> tuple[Execution, ...]:
        raise ExhaustedError(f"attempt {attempt} of {job} cannot be read")


@pytest.mark.parametrize("attempt", [1, 5, 30])
async def test_whoever_asks_for_an_attempt_is_told_what_it_has_left(attempt: int) -> None:
    w, job = often(30)
    assert is_whole(w.cluster.jobs[job], attempt) == (attempt != 5)
    with closing(StoredPast(w.store)) as past:
        operations = OutputOperations(Trusted().operations, engine_of(w), None, past)
        found, following = await operations.list(of_all(Access.VIEWER), job, attempt=attempt)

    assert (found.attempt, following) == (attempt, 0)
    assert [(each.rank, each.outputs.tree) for each in found.ranks] == [(0, tree(attempt))]


async def test_the_depot_is_told_what_every_attempt_has_left() -> None:
    w, _ = often(30)
    depot = Named()
    async with naming_trees(engine_of(w), depot, StoredPast(w.store)):
        told = await depot.told

    assert {project: set(trees) for project, trees in told.items()} == {"default": {tree(n) for n in range(1, 31)}}


async def test_what_attempts_have_left_goes_with_their_executions() -> None:
    w, _ = often(40, replace(Limits(), stored=30))
    with closing(StoredPast(w.store)) as past:
        named = await named_trees(engine_of(w), past)

    assert set(named["default"]) == {tree(1), *(tree(number) for number in range(12, 41))}


async def test_no_names_are_told_while_old_attempts_cannot_be_read() -> None:
    w, _ = often(30)
    with closing(StoredPast(BrokenStore())) as past, pytest.raises(ExhaustedError, match="cannot be read"):
        await named_trees(engine_of(w), past)
