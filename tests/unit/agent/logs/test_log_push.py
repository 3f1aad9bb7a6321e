"""The log pusher against a coordinator that keeps logs as the real one does, and against some that misbehave."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from agent.logs.push import LOG_MESSAGE_BYTES, LOG_WINDOW, LogPusher, StreamLostError
from agent.logs.spool import LogSpool
from muster.domain.gangs.log import LogRecord, Stream
from muster.domain.ids import ExecutionId, NodeId
from muster.rpc.v1 import agents_pb2 as pb

NODE = NodeId("n")
ONE, TWO = ExecutionId("j-1-0"), ExecutionId("j-1-1")
LINE = LogRecord(time_ns=1_700_000_000_000_000_000, stream=Stream.STDOUT, text=b"x" * 1000)
MANY = 4 * LOG_WINDOW // 1000
"""Lines that fill several windows."""


@dataclass
class Coordinator:
    """Keeps logs: answers every chunk, in order, with what it has."""

    kept: dict[str, bytes] = field(default_factory=dict)
    chunks: list[tuple[str, int, int]] = field(default_factory=list)
    """Execution, offset and size of each chunk that arrived."""
    unwanted: set[str] = field(default_factory=set)
    open: "Call | None" = None
    reads: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether it takes chunks from the wire at the moment."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    capacity: int = 4
    """How many chunks fit on the wire."""

    def __post_init__(self) -> None:
        self.reads.set()

    def PushLogs(self, metadata: object = None) -> "Call":
        del metadata
        self.open = Call(self)
        return self.open

    async def has(self, name: str, content: bytes) -> None:
        """Wait until so much is kept."""
        while self.kept.get(name) != content:
            self.news.clear()
            await self.news.wait()

    def take(self, chunk: pb.LogChunk) -> pb.LogAck:
        self.news.set()
        self.chunks.append((chunk.execution, chunk.offset, len(chunk.data)))
        if chunk.execution in self.unwanted:
            return pb.LogAck(execution=chunk.execution, unwanted=True)
        have = self.kept.get(chunk.execution, b"")
        if 0 <= len(have) - chunk.offset < len(chunk.data):
            have = self.kept[chunk.execution] = have + chunk.data[len(have) - chunk.offset :]
        complete = chunk.last and len(have) >= chunk.offset + len(chunk.data)
        return pb.LogAck(execution=chunk.execution, offset=len(have), complete=complete)

    def carried(self) -> Counter[str]:
        """Bytes that came over the wire for each execution."""
        return sum((Counter({name: size}) for name, _, size in self.chunks), Counter())


class Call:
    """One open stream, which carries only so much at a time."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._wire: asyncio.Queue[pb.LogChunk | None] = asyncio.Queue(coordinator.capacity)
        self.sent = 0

    async def write(self, chunk: pb.LogChunk) -> None:
        await self._wire.put(chunk)
        self.sent += len(chunk.data)

    async def read(self) -> Any:
        await self._coordinator.reads.wait()
        chunk = await self._wire.get()
        return grpc.aio.EOF if chunk is None else self._coordinator.take(chunk)

    async def details(self) -> str:
        return ""

    def cancel(self) -> None:
        """Nothing to let go of."""

    async def close(self) -> None:
        """The coordinator ends it."""
        await self._wire.put(None)


class Scene:
    """A pusher with its logs."""

    def __init__(self, directory: Path) -> None:
        self.coordinator = Coordinator()
        self.completed: asyncio.Queue[ExecutionId] = asyncio.Queue()
        self.pusher = LogPusher(NODE, self.completed.put_nowait)
        self.spools = {name: LogSpool(directory / name) for name in (ONE, TWO)}

    def content(self, name: ExecutionId) -> bytes:
        return self.spools[name].read(0, 1 << 30)

    async def run(self) -> None:
        """One stream to its end."""
        with pytest.raises(ExceptionGroup) as caught:
            await self.pusher.run(self.coordinator)  # type: ignore[arg-type]  # the one call of the stub that is used
        assert caught.group_contains(StreamLostError)


@asynccontextmanager
async def scene(directory: Path, *names: ExecutionId) -> AsyncIterator[Scene]:
    """A pusher that follows these logs."""
    made = Scene(directory)
    for name in names or (ONE,):
        made.pusher.follow(name, made.spools[name])
    yield made
    for spool in made.spools.values():
        spool.close()


async def test_a_log_is_carried_whole_and_its_end_is_told(tmp_path: Path) -> None:
    async with scene(tmp_path) as it, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(it.run())
        it.spools[ONE].append_all([LINE] * MANY)
        it.spools[ONE].finish()
        assert await it.completed.get() == ONE
        assert it.coordinator.kept[ONE] == it.content(ONE)
        assert it.coordinator.carried()[ONE] == it.spools[ONE].size
        assert it.coordinator.open is not None
        await it.coordinator.open.close()
        await running


async def test_a_log_without_output_is_completed_too(tmp_path: Path) -> None:
    async with scene(tmp_path) as it, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(it.run())
        it.spools[ONE].finish()
        assert await it.completed.get() == ONE
        assert it.coordinator.chunks == [(ONE, 0, 0)]
        running.cancel()


async def test_two_busy_logs_take_turns(tmp_path: Path) -> None:
    async with scene(tmp_path, ONE, TWO) as it, asyncio.TaskGroup() as tasks:
        for name in (ONE, TWO):
            it.spools[name].append_all([LINE] * MANY)
            it.spools[name].finish()
        running = tasks.create_task(it.run())
        await it.completed.get()
        names = [name for name, _, _ in it.coordinator.chunks]
        halves = Counter(names[: len(names) // 2])
        assert abs(halves[ONE] - halves[TWO]) <= 2
        running.cancel()


async def test_no_more_than_a_window_is_under_way(tmp_path: Path) -> None:
    async with scene(tmp_path) as it, asyncio.TaskGroup() as tasks:
        it.coordinator.reads.clear()
        it.coordinator.capacity = 1000
        it.spools[ONE].append_all([LINE] * MANY)
        running = tasks.create_task(it.run())
        for _ in range(100):
            await asyncio.sleep(0)
        assert it.coordinator.open is not None
        assert LOG_WINDOW <= it.coordinator.open.sent < LOG_WINDOW + LOG_MESSAGE_BYTES
        running.cancel()


async def test_what_the_coordinator_has_already_is_not_carried_over_and_over(tmp_path: Path) -> None:
    """The stream broke after it stored several chunks and before it could say so."""
    async with scene(tmp_path) as it, asyncio.TaskGroup() as tasks:
        it.spools[ONE].append_all([LINE] * MANY)
        it.spools[ONE].finish()
        it.coordinator.kept[ONE] = it.spools[ONE].read(0, LOG_WINDOW)
        running = tasks.create_task(it.run())
        assert await it.completed.get() == ONE
        assert it.coordinator.kept[ONE] == it.content(ONE)
        assert it.coordinator.carried()[ONE] <= it.spools[ONE].size + 2 * LOG_WINDOW
        running.cancel()


async def test_a_coordinator_that_lost_what_it_had_gets_it_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as it, asyncio.TaskGroup() as tasks:
        it.spools[ONE].append_all([LINE] * MANY)
        running = tasks.create_task(it.run())
        await it.coordinator.has(ONE, it.content(ONE))
        it.coordinator.kept.clear()
        it.coordinator.chunks.clear()
        it.spools[ONE].append_all([LINE] * MANY)
        it.spools[ONE].finish()
        assert await it.completed.get() == ONE
        assert it.coordinator.kept[ONE] == it.content(ONE)
        assert it.coordinator.carried()[ONE] <= it.spools[ONE].size + 2 * LOG_WINDOW
        running.cancel()


async def test_a_new_stream_goes_on_where_the_last_acknowledgement_ended(tmp_path: Path) -> None:
    async with scene(tmp_path) as it, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(it.run())
        it.spools[ONE].append_all([LINE] * 10)
        await it.coordinator.has(ONE, it.content(ONE))
        assert it.coordinator.open is not None
        await it.coordinator.open.close()
        await running

        before = it.spools[ONE].size
        it.spools[ONE].append_all([LINE] * 10)
        it.spools[ONE].finish()
        running = tasks.create_task(it.run())
        await it.completed.get()
        assert [offset for _, offset, _ in it.coordinator.chunks][-1] == before
        assert it.coordinator.kept[ONE] == it.content(ONE)
        running.cancel()


async def test_a_log_that_nobody_wants_is_given_up(tmp_path: Path) -> None:
    async with scene(tmp_path) as it, asyncio.TaskGroup() as tasks:
        it.coordinator.unwanted.add(ONE)
        running = tasks.create_task(it.run())
        it.spools[ONE].append_all([LINE] * MANY)
        assert await it.completed.get() == ONE
        running.cancel()
    assert it.coordinator.carried()[ONE] <= LOG_WINDOW


async def test_a_log_that_is_cleared_away_while_others_are_sent_is_passed_over(tmp_path: Path) -> None:
    async with scene(tmp_path, ONE, TWO) as it, asyncio.TaskGroup() as tasks:
        it.coordinator.reads.clear()
        for name in (ONE, TWO):
            it.spools[name].append_all([LINE] * MANY)
        running = tasks.create_task(it.run())
        for _ in range(20):
            await asyncio.sleep(0)
        # The sender waits for the wire to take a chunk, in the middle of its round.
        it.pusher.forget(TWO)
        it.spools[TWO].close()
        it.spools[ONE].finish()
        it.coordinator.reads.set()
        assert await it.completed.get() == ONE
        running.cancel()
