"""The points of a job's executions, rank by rank."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from coordinator.core.records import Execution
from coordinator.engine.engine import Engine
from coordinator.service.watching.following import LogsWish, attempts_of, rounds_of
from coordinator.store.logs.points import LogPoints, PointBatch, PointChoice
from muster.domain.ids import ExecutionId
from muster.domain.telemetry.point import POINTS, RankPoints

READ_AT_ONCE = 1_000
"""Points that a follower is given of one rank before others have their turn."""
POINT_READERS = 2
"""Threads that look through logs at the same time, whoever asks: it is work for the processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointWish(LogsWish):
    """Which points of a job somebody wants."""

    keys: frozenset[str] = frozenset()
    """Empty: all."""
    most: int = POINTS
    """Points of each rank; of more so many are taken, evenly."""
    after: Mapping[int, int] = field(default_factory=dict)
    """What is known already: all points of a rank up to this offset."""


class PointMerge:
    """Reads the points of jobs as their records say which logs there are."""

    def __init__(self, engine: Engine, points: LogPoints) -> None:
        self._engine = engine
        self._points = points
        self._readers = asyncio.Semaphore(POINT_READERS)

    async def points(self, wish: PointWish) -> AsyncGenerator[RankPoints, None]:
        """The points there are, each rank by itself; then with `follow` what comes, until no log can grow any more.

        A rank that has none is told, too, once. Who follows without saying which attempt goes on with the next one when
        the job starts again.
        """
        async with aclosing(attempts_of(self._engine, wish)) as numbers:
            async for number in numbers:
                begin = partial(_begin, wish.after)
                async with aclosing(rounds_of(self._engine, wish, number, begin)) as rounds:
                    async for readings in rounds:
                        async for points in self._round(readings, wish):
                            yield points
                wish = replace(wish, after={})

    async def _round(self, readings: Sequence["_Reading"], wish: PointWish) -> AsyncIterator[RankPoints]:
        """Everything that is there now."""
        left = list(readings)
        while left:
            more: list[_Reading] = []
            for reading in left:
                before = reading.after
                choice = PointChoice(
                    keys=wish.keys, most=wish.most if before is None else READ_AT_ONCE, after=reading.after
                )
                async with self._readers:
                    batch = await asyncio.to_thread(self._points.read, reading.execution, choice)
                reading.heard(batch)
                if batch.points or before is None:
                    yield RankPoints(
                        rank=reading.member.rank, attempt=reading.member.attempt, points=batch.points, all=batch.all
                    )
                if before is not None and batch.next_offset != before:
                    more.append(reading)
            left = more


@dataclass(slots=True)
class _Reading:
    """Where the reading of one log stands."""

    member: Execution
    after: int | None
    """Points behind this offset come next; None: nothing was read yet."""
    at_end: bool = False

    @property
    def execution(self) -> ExecutionId:
        """The execution whose points these are."""
        return self.member.id

    def heard(self, batch: PointBatch) -> None:
        """Go on behind what was read."""
        self.after, self.at_end = batch.next_offset, batch.at_end


def _begin(after: Mapping[int, int], member: Execution) -> _Reading:
    return _Reading(member, after.get(member.rank))
