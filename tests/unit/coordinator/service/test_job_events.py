"""What happened to a job, told to callers in pages and followed until its end."""

from contextlib import aclosing
from typing import Any

import pytest

from coordinator.core.events import ExecutionsReported
from coordinator.core.records import KeepEvent
from coordinator.engine.engine import Engine
from coordinator.service.archive import StoredPast
from coordinator.service.jobs import JobOperations
from coordinator.service.stories import StoryWish
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import UnknownNameError
from muster.domain.event import JobEvent, JobEventKind
from muster.domain.fleet.access import Access
from muster.domain.gangs.plan import Stage
from muster.domain.ids import ExecutionId
from tests.builders import AT, report
from tests.unit.coordinator.engines import A, J, connection, engine_on, submission, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person
from tests.unit.coordinator.service.job_operations import job_operations


class Stored:
    """A store, the engine on it, and operations that read it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.engine = engine_on(self.store)
        self.jobs = job_operations(self.engine, Trusted(), StoredPast(self.store), pace=0)


async def told(jobs: JobOperations, **wanted: Any) -> list[list[JobEvent]]:
    """The pages of a viewer."""
    async with aclosing(jobs.events(of_all(Access.VIEWER), J, StoryWish(**wanted))) as pages:
        return [list(page) async for page in pages]


async def begin(engine: Engine) -> None:
    await engine.apply(connection(engine.streams.open()))
    await engine.apply(submission())


async def test_a_viewer_is_told_what_happened_so_far() -> None:
    stored = Stored()
    async with working(stored.engine):
        await begin(stored.engine)
        [events] = await told(stored.jobs)

    assert [event.kind for event in events] == [JobEventKind.SUBMITTED, JobEventKind.PLACED]


async def test_a_page_goes_on_after_the_number_of_the_last_event() -> None:
    stored = Stored()
    async with working(stored.engine):
        await begin(stored.engine)
        [[first]] = await told(stored.jobs, most=1)
        [rest] = await told(stored.jobs, after=first.number)

    assert [first.kind, *(event.kind for event in rest)] == [JobEventKind.SUBMITTED, JobEventKind.PLACED]


async def test_many_events_come_in_several_pages() -> None:
    stored = Stored()
    many = [
        KeepEvent(event=JobEvent(job=J, attempt=1, kind=JobEventKind.EXITED, at=AT, text="", rank=rank))
        for rank in range(450)
    ]
    async with working(stored.engine):
        await begin(stored.engine)
        stored.store.commit(many)
        pages = await told(stored.jobs)

    assert [len(page) for page in pages] == [200, 200, 52]


async def test_a_follower_is_told_of_everything_until_the_end() -> None:
    stored = Stored()
    async with working(stored.engine) as tasks:
        await begin(stored.engine)
        following = tasks.create_task(told(stored.jobs, follow=True), name="follow")
        for stage in (Stage.PREPARED, Stage.ARMED, Stage.RUNNING, Stage.EXITED):
            await stored.engine.apply(ExecutionsReported(node=A, reports=(report(ExecutionId("j-1-0"), stage),)))
        events = [event for page in await following for event in page]

    assert events == list(stored.store.events(J, 0, 100))
    assert events[-1].kind is JobEventKind.SUCCEEDED


async def test_who_may_not_see_the_project_is_told_nothing() -> None:
    stored = Stored()
    async with working(stored.engine):
        await begin(stored.engine)
        with pytest.raises(UnknownNameError):
            async with aclosing(stored.jobs.events(person(red=Access.ADMIN), J, StoryWish())) as pages:
                await anext(pages)
