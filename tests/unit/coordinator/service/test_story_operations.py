"""What callers may read of the stories of nodes and of the fleet, and how they follow them."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import pytest

from coordinator.core.causes import EventCause
from coordinator.core.events import CordonRequested, NodeDisconnected, ProjectAdded, RemovalRequested, UncordonRequested
from coordinator.engine.engine import Engine
from coordinator.service.archive import StoredPast
from coordinator.service.stories import EVENTS_AT_ONCE, StoryOperations, StoryWish
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import PermissionDeniedError, UnknownNameError
from muster.domain.event import FleetEvent, NodeEvent, NodeEventKind
from muster.domain.fleet.access import Access
from muster.domain.ids import NodeId
from tests.contract.records import node_events
from tests.unit.coordinator.engines import A, connection, engine_on, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person

BOB = EventCause("call k3f-2 nodes.cordon", "bob")
VIEWER = of_all(Access.VIEWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A fleet of one node, and whoever reads of it."""

    store: MemoryStore
    engine: Engine
    stories: StoryOperations
    stream: int


@asynccontextmanager
async def fleet() -> AsyncIterator[Fleet]:
    store = MemoryStore()
    engine = engine_on(store)
    async with working(engine):
        stream = engine.streams.open()
        await engine.apply(connection(stream))
        stories = StoryOperations(Trusted().operations, engine, StoredPast(store), pace=0)
        yield Fleet(store=store, engine=engine, stories=stories, stream=stream.number)


async def read(
    pages: AsyncGenerator[Sequence[NodeEvent], None] | AsyncGenerator[Sequence[FleetEvent], None],
) -> list[list[NodeEvent | FleetEvent]]:
    async with aclosing(pages):
        return [list(page) async for page in pages]


async def test_whoever_sees_some_project_reads_the_story_of_every_node_without_accounts() -> None:
    async with fleet() as there:
        await there.engine.apply(CordonRequested(node=A, reason="new disk", cause=BOB))
        [everything] = await read(there.stories.of_node(VIEWER, A, StoryWish()))
        [red] = await read(there.stories.of_node(person(red=Access.VIEWER), A, StoryWish()))

    assert [(event.kind, event.by) for event in everything] == [("joined", ""), ("cordoned", "bob"), ("drained", "bob")]
    assert [(event.kind, event.text, event.by) for event in red] == [
        ("joined", "", ""),
        ("cordoned", "new disk", ""),
        ("drained", "", ""),
    ]


async def test_whoever_sees_no_project_reads_no_story() -> None:
    async with fleet() as there:
        for story in (
            there.stories.of_node(person(), A, StoryWish()),
            there.stories.of_fleet(person(), StoryWish()),
        ):
            with pytest.raises(PermissionDeniedError):
                await read(story)


@pytest.mark.parametrize("caller", [VIEWER, person(red=Access.ADMIN)])
async def test_the_story_of_the_fleet_names_projects_and_is_for_its_operators(caller: object) -> None:
    async with fleet() as there:
        await there.engine.apply(ProjectAdded(name="new", cause=BOB))
        [told] = await read(there.stories.of_fleet(of_all(Access.OPERATOR), StoryWish()))
        with pytest.raises(PermissionDeniedError):
            await read(there.stories.of_fleet(caller, StoryWish()))  # type: ignore[arg-type]  # a Caller

    assert [(event.kind, event.by) for event in told] == [("project_added", "bob")]


async def test_the_story_of_a_removed_node_is_read_and_that_of_a_stranger_is_not_found() -> None:
    async with fleet() as there:
        await there.engine.apply(NodeDisconnected(node=A, session=there.stream))
        await there.engine.apply(RemovalRequested(node=A))
        [told] = await read(there.stories.of_node(VIEWER, A, StoryWish()))
        with pytest.raises(UnknownNameError, match="there is no node 'b'"):
            await read(there.stories.of_node(VIEWER, NodeId("b"), StoryWish()))

    assert [event.kind for event in told] == ["joined", "unreachable", "removed"]


async def test_a_reader_goes_on_after_a_number_and_takes_as_many_as_it_wants() -> None:
    async with fleet() as there:
        there.store.commit(node_events("a", EVENTS_AT_ONCE + 1))
        pages = await read(there.stories.of_node(VIEWER, A, StoryWish()))
        [[second]] = await read(there.stories.of_node(VIEWER, A, StoryWish(after=pages[0][0].number, most=1)))

    assert [len(page) for page in pages] == [EVENTS_AT_ONCE, 2]
    assert second == pages[0][1]


async def test_a_follower_is_told_of_what_happens_and_never_of_the_end() -> None:
    async with fleet() as there, aclosing(there.stories.of_node(VIEWER, A, StoryWish(follow=True))) as pages:
        first = await anext(pages)
        await there.engine.apply_all([CordonRequested(node=A), UncordonRequested(node=A)])
        second = await anext(pages)
        await there.engine.apply(CordonRequested(node=A))
        third = await anext(pages)

    kinds = [[event.kind for event in page] for page in (first, second, third)]
    assert kinds == [
        [NodeEventKind.JOINED],
        [NodeEventKind.CORDONED, NodeEventKind.UNCORDONED],
        [NodeEventKind.CORDONED, NodeEventKind.DRAINED],
    ]
