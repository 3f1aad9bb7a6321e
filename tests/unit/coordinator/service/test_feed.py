"""The feed as callers may see it, without a transport."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from coordinator.core.events import DeleteRequested, NodeDisconnected, StopRequested
from coordinator.engine.engine import Engine
from coordinator.service.following.feed import FEED_ROWS, FeedOperations
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.caller import Caller
from muster.domain.errors import PermissionDeniedError
from muster.domain.feed import FeedBatch, FeedKey, FeedPart, FeedPlace
from muster.domain.fleet.access import Access
from muster.domain.fleet.node import NodeState, NodeView
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase
from tests.unit.coordinator.engines import A, connection, engine_on, submission, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person

ALL = frozenset(FeedPart)
ROOT, RED, NOBODY = of_all(Access.VIEWER), person("red", red=Access.VIEWER), person("nobody")


@dataclass
class Picture:
    """What a reader knows."""

    place: FeedPlace = field(default_factory=FeedPlace)
    jobs: dict[str, JobPhase] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    projects: set[str] = field(default_factory=set)
    queue: list[str] = field(default_factory=list)
    begun: int = 0
    """How often it has begun anew."""

    def take(self, batch: FeedBatch) -> None:
        if batch.anew:
            self.jobs, self.nodes, self.projects, self.begun = {}, set(), set(), self.begun + 1
        self.jobs |= {job.id: job.phase for job in batch.jobs}
        self.nodes |= {node.name for node in batch.nodes}
        self.projects |= {project.name for project in batch.projects}
        for part, name in batch.gone:
            self.jobs.pop(name, None)
            (self.nodes if part is FeedPart.NODES else self.projects).discard(name)
        if batch.queue is not None:
            self.queue = [line.job for line in batch.queue]
        self.place = batch.place


@dataclass
class Reader:
    """Somebody who follows, and what they know."""

    batches: AsyncGenerator[FeedBatch, None]
    picture: Picture

    async def caught_up(self) -> Picture:
        """The picture once nothing more is known."""
        async for batch in self.batches:
            self.picture.take(batch)
            if batch.caught_up:
                return self.picture
        raise AssertionError("the feed has ended")


def feed_of(engine: Engine) -> FeedOperations:
    return FeedOperations(Trusted().operations, engine, lambda project: project, pace=0, queue_pace=0)


@asynccontextmanager
async def reading(
    feed: FeedOperations, caller: Caller, picture: Picture | None = None, parts: Collection[FeedPart] = ALL
) -> AsyncIterator[Reader]:
    known = picture or Picture()
    async with aclosing(feed.follow(caller, known.place, parts)) as batches:
        yield Reader(batches, known)


async def until_caught_up(reader: Reader) -> AsyncIterator[FeedBatch]:
    """What is told until nothing more is known."""
    async for batch in reader.batches:
        yield batch
        if batch.caught_up:
            return


async def nodes_told(reader: Reader) -> list[NodeView]:
    """The nodes of the next round."""
    return [node async for batch in until_caught_up(reader) for node in batch.nodes]


async def submitted(engine: Engine, name: str, project: str) -> JobId:
    await engine.apply(submission(name, project=project))
    return JobId(name)


async def test_a_reader_is_told_of_all_that_is_there_and_then_of_what_changes() -> None:
    engine = engine_on(MemoryStore())
    async with working(engine):
        await submitted(engine, "one", "red")
        async with reading(feed_of(engine), ROOT) as reader:
            first = await reader.caught_up()
            assert first.jobs == {"one": JobPhase.QUEUED}
            assert {"red", "blue"} <= first.projects
            assert first.queue == ["one"]
            await submitted(engine, "two", "blue")
            assert (await reader.caught_up()).jobs.keys() == {"one", "two"}
            await engine.apply(StopRequested(job=JobId("one")))
            stopped = await reader.caught_up()
            assert stopped.jobs["one"] is JobPhase.STOPPED
            assert stopped.queue == ["two"]
            await engine.apply(DeleteRequested(job=JobId("one"), force=False))
            assert (await reader.caught_up()).jobs.keys() == {"two"}


async def test_nodes_are_told_when_they_come_run_something_and_fall_silent() -> None:
    engine = engine_on(MemoryStore())
    async with working(engine), reading(feed_of(engine), RED) as reader:
        assert (await reader.caught_up()).nodes == set()
        stream = engine.streams.open()
        await engine.apply(connection(stream))
        assert [(node.name, node.state) for node in await nodes_told(reader)] == [("a", NodeState.READY)]
        await submitted(engine, "one", "red")
        assert [len(node.executions) for node in await nodes_told(reader)] == [1]
        await engine.apply(NodeDisconnected(node=A, session=stream.number))
        assert [node.state for node in await nodes_told(reader)] == [NodeState.UNREACHABLE]


async def test_jobs_of_other_projects_are_told_to_nobody_neither_their_names_nor_that_they_went() -> None:
    engine = engine_on(MemoryStore())
    async with working(engine):
        await submitted(engine, "mine", "red")
        await submitted(engine, "theirs", "blue")
        async with reading(feed_of(engine), RED) as reader:
            picture = await reader.caught_up()
            assert picture.jobs.keys() == {"mine"}
            assert picture.projects == {"red"}
            assert sorted(picture.queue) == ["", "mine"]
            await engine.apply(StopRequested(job=JobId("theirs")))
            await engine.apply(DeleteRequested(job=JobId("theirs"), force=False))
            await submitted(engine, "more", "red")
            told = [batch async for batch in until_caught_up(reader)]
            assert [key for batch in told for key in batch.gone] == []
            assert [job.id for batch in told for job in batch.jobs] == ["more"]


async def test_who_sees_no_project_is_refused() -> None:
    engine = engine_on(MemoryStore())
    async with working(engine), reading(feed_of(engine), NOBODY) as reader:
        with pytest.raises(PermissionDeniedError):
            await reader.caught_up()


async def test_a_reader_that_comes_back_is_told_of_what_it_missed_alone() -> None:
    engine = engine_on(MemoryStore())
    async with working(engine):
        feed = feed_of(engine)
        await submitted(engine, "stays", "red")
        await submitted(engine, "goes", "red")
        async with reading(feed, ROOT) as reader:
            picture = await reader.caught_up()
        await engine.apply(StopRequested(job=JobId("goes")))
        await engine.apply(DeleteRequested(job=JobId("goes"), force=False))
        await submitted(engine, "comes", "red")
        async with reading(feed, ROOT, picture) as reader:
            told = [batch async for batch in until_caught_up(reader)]
        assert not any(batch.anew for batch in told)
        assert [job.id for batch in told for job in batch.jobs] == ["comes"]
        assert [key for batch in told for key in batch.gone] == [FeedKey(FeedPart.JOBS, "goes")]


@pytest.mark.parametrize(
    "place",
    [
        FeedPlace(instance="of another life", revision=1),
        FeedPlace(instance="", revision=1),
        FeedPlace(instance="", revision=2**60),
    ],
)
async def test_a_place_that_means_nothing_is_answered_with_everything_anew(place: FeedPlace) -> None:
    engine = engine_on(MemoryStore())
    async with working(engine):
        await submitted(engine, "one", "red")
        async with reading(feed_of(engine), ROOT, Picture(place=place)) as reader:
            picture = await reader.caught_up()
        assert (picture.begun, list(picture.jobs)) == (1, ["one"])


async def test_who_may_look_at_more_than_before_begins_anew() -> None:
    engine = engine_on(MemoryStore())
    async with working(engine):
        feed = feed_of(engine)
        await submitted(engine, "theirs", "blue")
        async with reading(feed, RED) as reader:
            picture = await reader.caught_up()
        async with reading(feed, person("red", red=Access.VIEWER, blue=Access.VIEWER), picture) as reader:
            assert (await reader.caught_up()).jobs.keys() == {"theirs"}
        assert picture.begun == 2


async def test_much_is_told_in_pieces_and_one_that_stops_in_between_goes_on_there() -> None:
    engine = engine_on(MemoryStore())
    async with working(engine):
        feed = feed_of(engine)
        jobs = [f"job{number}" for number in range(3 * FEED_ROWS)]
        await engine.apply_all([submission(job, project="red") for job in jobs])
        async with reading(feed, ROOT, parts={FeedPart.JOBS}) as reader:
            reader.picture.take(await anext(reader.batches))
            assert len(reader.picture.jobs) == FEED_ROWS
        async with reading(feed, ROOT, reader.picture, {FeedPart.JOBS}) as again:
            told = [batch async for batch in until_caught_up(again)]
        assert [len(batch.jobs) for batch in told] == [FEED_ROWS, FEED_ROWS, 0]
        assert not any(batch.anew for batch in told)


async def test_a_reader_of_one_part_hears_of_no_other() -> None:
    engine = engine_on(MemoryStore())
    async with working(engine):
        await submitted(engine, "one", "red")
        async with reading(feed_of(engine), ROOT, parts={FeedPart.PROJECTS}) as reader:
            picture = await reader.caught_up()
        assert (picture.jobs, picture.queue) == ({}, [])
        assert "red" in picture.projects


async def test_a_coordinator_that_comes_back_tells_everything_anew_from_its_records() -> None:
    store = MemoryStore()
    engine = engine_on(store)
    async with working(engine):
        await submitted(engine, "one", "red")
        async with reading(feed_of(engine), ROOT) as reader:
            picture = await reader.caught_up()
    again = Engine(store, lambda _: None)
    async with working(again), reading(feed_of(again), ROOT, picture) as reader:
        assert (await reader.caught_up()).jobs.keys() == {"one"}
    assert picture.begun == 2
