"""The logs of a job's executions as one stream, in the order of time as far as known when sent."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from coordinator.core.records import Execution
from coordinator.engine.engine import Engine
from coordinator.service.watching.following import LogsWish, attempts_of, rounds_of
from coordinator.store.logs.logs import LogStore
from muster.domain.gangs.log import LogRecord, Stream
from muster.domain.ids import ExecutionId

READ_AHEAD = 500
"""Records read at once of one log; bounds the memory of a merge."""
AT_A_TIME = 64
"""Logs that a thread reads before it comes back: of a gang most have nothing new, and the way there costs more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWish(LogsWish):
    """Which lines somebody wants to see."""

    since: datetime | None = None
    tail: int | None = None


class PrintedLine(NamedTuple):
    """A piece of output and whose it is; a tuple, as a follower of a large job gets hundreds of thousands."""

    rank: int
    attempt: int
    record: LogRecord


class LogMerge:
    """Reads the logs of jobs as their records say which there are."""

    def __init__(self, engine: Engine, logs: LogStore) -> None:
        self._engine = engine
        self._logs = logs

    async def lines(self, wish: LogWish) -> AsyncGenerator[list[PrintedLine], None]:
        """The lines there are, then with `follow` what comes, until none of the logs can grow any more.

        Who follows without saying which attempt goes on with the next one when the job starts again.
        """
        async with aclosing(attempts_of(self._engine, wish)) as numbers:
            async for number in numbers:
                async with aclosing(rounds_of(self._engine, wish, number, _Tail)) as rounds:
                    async for tails in rounds:
                        async for batch in self._round(tails, wish):
                            yield batch
                wish = replace(wish, since=None, tail=None)

    async def _round(self, tails: Sequence["_Tail"], wish: LogWish) -> AsyncIterator[list[PrintedLine]]:
        """Everything that is there now. What is sent next is not older than what every log read so far still holds."""
        reading = list(tails)
        while reading:
            dry = [tail for tail in reading if not tail.ahead]
            for start in range(0, len(dry), AT_A_TIME):
                await asyncio.to_thread(self._fill, dry[start : start + AT_A_TIME], wish)
            reading = [tail for tail in reading if tail.ahead]
            if reading:
                horizon = min(tail.newest() for tail in reading)
                lines = [line for tail in reading for line in tail.until(horizon)]
                lines.sort(key=lambda line: line.record.time_ns)
                yield lines

    def _fill(self, tails: Sequence["_Tail"], wish: LogWish) -> None:
        """Read on in some logs; blocks."""
        for tail in tails:
            if tail.offset is None and tail.member.log_kept and not self._logs.kept(tail.execution):
                tail.ahead.append(_missing(tail.member))
            batch = self._logs.read(
                tail.execution,
                offset=tail.offset,
                since=wish.since,
                tail=wish.tail if tail.offset is None else None,
                limit=READ_AHEAD,
            )
            while not batch.records and batch.next_offset != (tail.offset or 0) and not batch.at_end:
                tail.offset = batch.next_offset
                batch = self._logs.read(tail.execution, offset=tail.offset, since=wish.since, limit=READ_AHEAD)
            tail.offset, tail.at_end = batch.next_offset, batch.at_end
            tail.ahead.extend(batch.records)


@dataclass(slots=True)
class _Tail:
    """Where the reading of one log stands."""

    member: Execution
    offset: int | None = None
    at_end: bool = False
    ahead: deque[LogRecord] = field(default_factory=deque)

    @property
    def execution(self) -> ExecutionId:
        """The execution whose log it is."""
        return self.member.id

    def newest(self) -> int:
        """The latest time in what was read ahead; not always the last one, as streams of a container are read apart."""
        return max(record.time_ns for record in self.ahead)

    def until(self, horizon: int) -> list[PrintedLine]:
        """Take what was printed until a time."""
        lines: list[PrintedLine] = []
        while self.ahead and self.ahead[0].time_ns <= horizon:
            lines.append(PrintedLine(self.member.rank, self.member.attempt, self.ahead.popleft()))
        return lines


def _missing(member: Execution) -> LogRecord:
    """What stands in the place of a log that was complete and is gone."""
    text = "[muster] the log of this execution is missing: it was complete, and is gone from the coordinator's disk"
    ended = max(member.times.values(), default=datetime.now(UTC))
    return LogRecord(time_ns=int(ended.timestamp()) * 10**9, stream=Stream.STDERR, text=text.encode(), marker=True)
