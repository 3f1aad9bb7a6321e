"""Heartbeats are counted together, acknowledged one by one, and never before they count."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coordinator.core.events import HeartbeatReceived
from coordinator.engine.agent_streams import AgentStream
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.downlink import Downlink
from coordinator.rpc.agents.heartbeats import Heartbeats, Pulse
from coordinator.store.records.memory import MemoryStore
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from tests.unit.coordinator.engines import StoreThatIsFull, all_else_has_had_its_turn, connection, engine_on, working

NAMES = [NodeId("a"), NodeId("b"), NodeId("c")]


class Agent:
    """The other end of a stream; reads only while it may."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[int] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()
        self.gone = False

    async def write(self, message: pb.CoordinatorMessage) -> None:
        await self.reads.wait()
        if self.gone:
            raise ConnectionError
        self.heard.put_nowait(message.heartbeat_ack.sequence)


class Stream:
    """The coordinator's end."""

    def __init__(self, heartbeats: Heartbeats, node: NodeId, session: AgentStream) -> None:
        self.agent = Agent()
        self.session = session
        self._node = node
        self._pulse = Pulse(heartbeats, session, Downlink(self.agent))

    async def beats(self, sequence: int) -> None:
        event = HeartbeatReceived(node=self._node, session=self.session.number, plan_revision=0)
        await self._pulse.take(event, sequence)


@asynccontextmanager
async def streams(store: MemoryStore | None = None) -> AsyncIterator[tuple[Engine, asyncio.TaskGroup, list[Stream]]]:
    """An engine at work, and a stream of each of three nodes."""
    engine = engine_on(store or MemoryStore())
    heartbeats = Heartbeats(engine, moment=0.0)
    async with working(engine) as tasks:
        found = []
        for name in NAMES:
            session = engine.streams.open()
            await engine.apply(connection(session, node=name))
            found.append(Stream(heartbeats, name, session))
        yield engine, tasks, found


async def test_heartbeats_of_several_streams_are_each_acknowledged() -> None:
    async with streams() as (_, _, each):
        for number, stream in enumerate(each):
            await stream.beats(number + 1)
        assert [await stream.agent.heard.get() for stream in each] == [1, 2, 3]


async def test_an_agent_that_does_not_read_holds_up_its_own_next_heartbeat_and_no_other() -> None:
    async with streams() as (_, tasks, [slow, other, _]):
        slow.agent.reads.clear()
        await slow.beats(1)
        await other.beats(1)
        second = tasks.create_task(slow.beats(2), name="second")
        assert await other.agent.heard.get() == 1
        await other.beats(2)
        assert await other.agent.heard.get() == 2
        assert not second.done()

        slow.agent.reads.set()
        assert [await slow.agent.heard.get(), await slow.agent.heard.get()] == [1, 2]


async def test_a_heartbeat_on_a_stream_that_does_not_count_any_more_is_not_acknowledged() -> None:
    async with streams() as (engine, _, [old, *_]):
        newer = engine.streams.open()
        await engine.apply(connection(newer, node=NAMES[0]))
        await old.beats(1)
        await old.beats(2)  # taken once the first one has its answer
        assert old.agent.heard.empty()


async def test_streams_end_whose_heartbeats_cannot_be_counted() -> None:
    store = StoreThatIsFull()
    store.full = False
    async with streams(store) as (engine, _, [first, *_]):
        store.full = True
        await asyncio.gather(engine.apply(connection(engine.streams.open(), node=NodeId("d"))), return_exceptions=True)
        await first.beats(1)
        await first.session.closed.wait()
        assert first.agent.heard.empty()


async def test_streams_end_whose_heartbeats_come_after_the_end_of_the_engine() -> None:
    async with streams() as (_, _, [first, *_]):
        pass
    await first.beats(1)
    await first.session.closed.wait()
    assert first.agent.heard.empty()


async def test_a_stream_ends_on_which_nothing_can_be_said() -> None:
    async with streams() as (_, _, [first, *_]):
        first.agent.gone = True
        await first.beats(1)
        await first.session.closed.wait()
        await all_else_has_had_its_turn()
        assert first.agent.heard.empty()
