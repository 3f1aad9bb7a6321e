"""Watching a job: a new phase is told at once, and what happens within one only at a pace."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from coordinator.core.events import DeleteRequested, ExecutionsReported, StopRequested
from coordinator.engine.engine import Engine
from coordinator.service.jobs import JobOperations
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import ExecutionId
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import JobView
from tests.builders import AT
from tests.unit.coordinator.engines import A, J, connection, engine_on, submission, working
from tests.unit.coordinator.service.callers import Trusted, of_all
from tests.unit.coordinator.service.job_operations import job_operations


class Watcher:
    """Takes what is told of a job, until it has ended or is gone."""

    def __init__(self) -> None:
        self.views: asyncio.Queue[JobView] = asyncio.Queue()
        self.refusals: asyncio.Queue[UnknownNameError] = asyncio.Queue()

    async def watch(self, jobs: JobOperations, *, end_only: bool) -> None:
        try:
            async with aclosing(jobs.watch(of_all(Access.VIEWER), J, end_only=end_only)) as views:
                async for view in views:
                    self.views.put_nowait(view)
        except UnknownNameError as error:
            self.refusals.put_nowait(error)

    async def until(self, phase: JobPhase) -> list[tuple[str, str]]:
        """What comes until the job is in this phase: phase of the job and state of its execution."""
        seen: list[tuple[str, str]] = []
        while not seen or seen[-1][0] != phase:
            job = await self.views.get()
            seen.append((job.phase, job.attempts[0].executions[0].state))
        return seen


@asynccontextmanager
async def watched(pace: float, *, end_only: bool = False) -> AsyncIterator[tuple[Engine, Watcher]]:
    """A job that is being prepared on one node, and somebody who watches it and has seen so much."""
    engine = engine_on(MemoryStore())
    jobs = job_operations(engine, Trusted(), pace=pace)
    async with working(engine) as tasks:
        await engine.apply(connection(engine.streams.open()))
        await engine.apply(submission())
        watcher = Watcher()
        watching = tasks.create_task(watcher.watch(jobs, end_only=end_only), name="watch")
        await watcher.until(JobPhase.PREPARING)
        yield engine, watcher
        watching.cancel()


async def say(engine: Engine, stage: Stage, detail: str = "") -> None:
    report = Report(execution=ExecutionId("j-1-0"), stage=stage, at=AT, detail=detail)
    await engine.apply(ExecutionsReported(node=A, reports=(report,)))


async def test_a_new_phase_is_told_at_once_and_what_happened_before_it_is_not_told_step_by_step() -> None:
    async with watched(math.inf) as (engine, watcher):
        for detail in ("fetching", "unpacking", "linking"):
            await say(engine, Stage.PREPARING, detail)
        await engine.apply(StopRequested(job=J))
        assert await watcher.until(JobPhase.STOPPING) == [(JobPhase.STOPPING, State.STOPPING)]
        await say(engine, Stage.STOPPED)
        assert await watcher.until(JobPhase.STOPPED) == [(JobPhase.STOPPED, State.STOPPED)]


async def test_what_happens_within_a_phase_is_told_after_a_pause() -> None:
    async with watched(0) as (engine, watcher):
        await say(engine, Stage.PREPARING, "fetching")
        view = await watcher.views.get()

    assert (view.phase, view.attempts[0].executions[0].detail) == (JobPhase.PREPARING, "fetching")


async def test_who_asks_for_the_end_alone_is_told_nothing_in_between() -> None:
    async with watched(0, end_only=True) as (engine, watcher):
        await say(engine, Stage.PREPARING, "fetching")
        await engine.apply(StopRequested(job=J))
        await say(engine, Stage.STOPPED)
        assert await watcher.until(JobPhase.STOPPED) == [(JobPhase.STOPPED, State.STOPPED)]


async def test_who_asks_for_the_end_alone_is_told_of_a_job_that_is_deleted() -> None:
    async with watched(0, end_only=True) as (engine, watcher):
        await engine.apply(DeleteRequested(job=J, force=True))
        await say(engine, Stage.STOPPED)
        assert str(await watcher.refusals.get()) == "job j was deleted"
