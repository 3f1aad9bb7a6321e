"""Stories of jobs, nodes and the fleet: their events in pages, oldest first, and what callers may read of them."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from coordinator.engine.engine import Engine, Freshness
from coordinator.service.archive import StoredPast
from coordinator.service.operations import Operations
from coordinator.signals import Listener
from coordinator.trust.caller import Caller
from coordinator.views.nodes import unknown_node
from muster.domain.event import FLEET_SUBJECT, FleetEvent, NodeEvent, NumberedEvent, node_subject
from muster.domain.fleet.access import Access
from muster.domain.ids import NodeId

EVENTS_AT_ONCE = 200
"""Events that are read and told at a time."""

STORY_PACE = 0.1
"""Seconds between two looks at a story for one follower."""


EventT = TypeVar("EventT", bound=NumberedEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryWish:
    """Which events of a story a reader wants."""

    after: int = 0
    """Only events with a higher number."""
    most: int = 0
    """How many of them at most; 0: all."""
    follow: bool = False
    """Whether to go on with what happens from now on."""


async def event_pages(
    wish: StoryWish,
    read: Callable[[int, int], Awaitable[Sequence[EventT]]],
    goes_on: Callable[[], Awaitable[bool]],
    listener: Listener,
    pace: float,
) -> AsyncGenerator[Sequence[EventT], None]:
    """Pages of events as wished; `read` gives those after a number, at most so many.

    A follower is told more while `goes_on` says so, which is asked before each look: the end of a story is stored with
    what is told of it.
    """
    after, left = wish.after, wish.most or sys.maxsize
    while left:
        more = wish.follow and await goes_on()
        page = await read(after, min(left, EVENTS_AT_ONCE))
        if page:
            after, left = page[-1].number, left - len(page)
            yield page
        if len(page) == EVENTS_AT_ONCE:
            continue
        if not more:
            return
        await listener.wait()
        await asyncio.sleep(pace)  # of much that happens at once there are many signals, and few events


class StoryOperations:
    """What callers may read of the stories of nodes and of the fleet."""

    def __init__(self, operations: Operations, engine: Engine, past: StoredPast, pace: float = STORY_PACE) -> None:
        self._operations = operations
        self._engine = engine
        self._past = past
        self._pace = pace

    async def of_node(self, caller: Caller, node: NodeId, wish: StoryWish) -> AsyncGenerator[Sequence[NodeEvent], None]:
        """Pages of events of a node, also of one that was removed; a follower is told more until it leaves.

        Accounts are named to those alone who see all projects. Raises UnknownNameError for a node that never was.
        """
        async with self._operations.begin(caller, "nodes.events", node):
            await self._require(node)
            with self._engine.signals.listen(node_subject(node)) as listener:

                async def read(after: int, most: int) -> Sequence[NodeEvent]:
                    return await self._past.node_events(node, after, most)

                async for page in event_pages(wish, read, _for_ever, listener, self._pace):
                    yield page if caller.may(Access.VIEWER) else [replace(event, by="") for event in page]

    async def of_fleet(self, caller: Caller, wish: StoryWish) -> AsyncGenerator[Sequence[FleetEvent], None]:
        """Pages of events of the fleet; a follower is told more until it leaves."""
        async with self._operations.begin(caller, "fleet.events"):
            with self._engine.signals.listen(FLEET_SUBJECT) as listener:
                async for page in event_pages(wish, self._past.fleet_events, _for_ever, listener, self._pace):
                    yield page

    async def _require(self, node: NodeId) -> None:
        known = await self._engine.query(lambda cluster, _: node in cluster.nodes, after=Freshness.COMMITTED)
        if not known and not await self._past.node_events(node, 0, 1):
            raise unknown_node(node)


async def _for_ever() -> bool:
    return True
