"""Logs that agents send: kept if they are wanted, and finished together."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from coordinator.core.events import JobSubmitted
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.log_intake import LogIntake
from coordinator.store.logs.logs import LogStore
from coordinator.store.logs.quota import LogLimits, LogQuota
from coordinator.store.records.memory import MemoryStore
from coordinator.store.store import StoreError
from muster.domain.gangs.log import LogRecord, Stream, format_record
from muster.domain.ids import ExecutionId, JobId
from muster.rpc.v1 import agents_pb2 as pb
from tests.builders import spec
from tests.unit.coordinator.engines import (
    A,
    J,
    connection,
    engine_on,
    working,
)

LINE = format_record(LogRecord(time_ns=1_800_000_000_000_000_000, stream=Stream.STDOUT, text=b"hello"))


class LogsOnASlowDisk(LogStore):
    """What is finished waits until the disk is let go; it remembers what came to it together."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.entered = threading.Event()
        self.let_go = threading.Event()
        self.trips: list[tuple[ExecutionId, ...]] = []
        self.faulty = -1
        """The trip that fails."""

    def finish(self, *executions: ExecutionId) -> None:
        self.trips.append(executions)
        self.entered.set()
        self.let_go.wait(60)
        if len(self.trips) - 1 == self.faulty:
            raise StoreError("the disk failed")
        super().finish(*executions)


@asynccontextmanager
async def gang_of(size: int) -> AsyncIterator[tuple[Engine, asyncio.TaskGroup]]:
    """A job that is placed on the node."""
    engine = engine_on(MemoryStore())
    async with working(engine) as tasks:
        await engine.apply(connection(engine.streams.open()))
        await engine.apply(JobSubmitted(job=J, spec=spec(size)))
        yield engine, tasks


async def all_wait(intake: LogIntake, count: int) -> None:
    """Until so many logs wait for the disk."""
    while len(intake.waiting) < count:  # noqa: ASYNC110 - nobody is told when they do
        await asyncio.sleep(0)


def piece(rank: int, data: bytes = b"", offset: int = 0, *, last: bool = False, node: str = A) -> pb.LogChunk:
    return pb.LogChunk(execution=f"{J}-1-{rank}", node=node, data=data, offset=offset, last=last)


def ack(rank: int, offset: int, *, complete: bool = False) -> pb.LogAck:
    return pb.LogAck(execution=f"{J}-1-{rank}", offset=offset, complete=complete)


async def test_a_log_is_kept_piece_by_piece_until_the_last(tmp_path: Path) -> None:
    logs = LogStore(tmp_path)
    async with gang_of(1) as (engine, _):
        intake = LogIntake(engine, logs)
        assert await intake.store(piece(0, LINE)) == ack(0, len(LINE))
        assert await intake.store(piece(0, LINE, 2 * len(LINE), last=True)) == ack(0, len(LINE))
        assert await intake.store(piece(0, LINE, len(LINE))) == ack(0, 2 * len(LINE))
        assert await intake.store(piece(0, b"", 2 * len(LINE), last=True)) == ack(0, 2 * len(LINE), complete=True)
        assert await intake.store(piece(0, LINE, 2 * len(LINE))) == ack(0, 2 * len(LINE), complete=True)
    logs.close()


async def test_the_log_of_a_stranger_is_not_wanted(tmp_path: Path) -> None:
    async with gang_of(1) as (engine, _):
        intake = LogIntake(engine, LogStore(tmp_path))
        for stranger in (piece(7, LINE), piece(0, LINE, node="b")):
            assert await intake.store(stranger) == pb.LogAck(execution=stranger.execution, unwanted=True)

    assert not (tmp_path / J).exists()


async def test_logs_that_end_while_others_are_on_their_way_to_the_disk_go_there_together(tmp_path: Path) -> None:
    logs = LogsOnASlowDisk(tmp_path)
    async with gang_of(4) as (engine, tasks):
        intake = LogIntake(engine, logs)
        first = tasks.create_task(intake.store(piece(0, last=True)), name="rank 0")
        await asyncio.to_thread(logs.entered.wait, 60)
        others = [tasks.create_task(intake.store(piece(rank, last=True)), name=f"rank {rank}") for rank in (1, 2, 3)]
        await all_wait(intake, len(others))
        assert not any(each.done() for each in (first, *others))
        logs.let_go.set()
        assert [await each for each in (first, *others)] == [ack(rank, 0, complete=True) for rank in range(4)]

    assert [sorted(trip) for trip in logs.trips] == [[f"{J}-1-0"], [f"{J}-1-{rank}" for rank in (1, 2, 3)]]
    logs.close()


async def test_a_fault_of_the_disk_is_told_to_one_and_the_others_try_again(tmp_path: Path) -> None:
    logs = LogsOnASlowDisk(tmp_path)
    logs.faulty = 1
    async with gang_of(4) as (engine, tasks):
        intake = LogIntake(engine, logs)
        first = tasks.create_task(intake.store(piece(0, last=True)), name="rank 0")
        await asyncio.to_thread(logs.entered.wait, 60)
        others = [asyncio.ensure_future(intake.store(piece(rank, last=True))) for rank in (1, 2, 3)]
        await all_wait(intake, len(others))
        logs.let_go.set()
        await first
        results = await asyncio.gather(*others, return_exceptions=True)

    assert [type(result) for result in results if not isinstance(result, pb.LogAck)] == [StoreError]
    assert [len(trip) for trip in logs.trips] == [1, 3, 2]
    logs.close()


async def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    async with gang_of(1) as (engine, _):
        with pytest.raises(ValueError, match="whole lines"):
            await LogIntake(engine, LogStore(tmp_path)).store(piece(0, b"no log"))


@pytest.mark.parametrize("limits", [LogLimits(project=100), LogLimits(total=100)])
async def test_a_log_beyond_the_quota_ends_with_a_line_that_says_so(tmp_path: Path, limits: LogLimits) -> None:
    logs, quota = LogStore(tmp_path), LogQuota(limits)
    async with gang_of(2) as (engine, _):
        intake = LogIntake(engine, logs, quota)
        size = 0
        while size < 100:
            size = (await intake.store(piece(0, LINE, size))).offset
        refused = await intake.store(piece(1, LINE))
        last = logs.last_lines(ExecutionId(f"{J}-1-1"), 5)
        quota.drop(JobId(J))
        assert quota.refusal("default") is None

    assert refused.complete
    assert len(last) == 1
    assert last[0].startswith("[muster] the ")
    assert "is reached; the rest of this log is not kept; delete jobs to make room" in last[0]
    logs.close()


async def test_logs_of_before_count_for_the_quota(tmp_path: Path) -> None:
    (tmp_path / J).mkdir()
    (tmp_path / J / "1-0.cri").write_bytes(LINE * 4)
    quota = LogQuota(LogLimits(project=4 * len(LINE)))
    assert quota.refusal("vision") is None
    quota.count(tmp_path, {JobId(J): "vision", JobId("without"): "vision"})

    assert quota.refusal("vision") is not None
    assert quota.refusal("other") is None
