"""The points of a job's executions, rank by rank."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coordinator.core.records import Execution
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.watching.members import complete_logs, members, newest_attempt
from coordinator.store.logs.points import LogPoints, PointBatch, PointChoice
from muster.domain.ids import ExecutionId, JobId
from muster.domain.telemetry.point import POINTS, RankPoints

READ_AT_ONCE = 1_000
"""Points that a follower is given of one rank before others have their turn."""
POINT_READERS = 2
"""Threads that look through logs at the same time, whoever asks: it is work for the processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointWish:
    """Which points of a job somebody wants."""

    job: JobId
    attempt: int = 0
    """0: the newest."""
    ranks: frozenset[int] = frozenset()
    """Empty: all."""
    keys: frozenset[str] = frozenset()
    """Empty: all."""
    most: int = POINTS
    """Points of each rank; of more so many are taken, evenly."""
    after: Mapping[int, int] = field(default_factory=dict)
    """What is known already: all points of a rank up to this offset."""
    follow: bool = False


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
        number = wish.attempt or await self._newest(wish.job)
        while True:
            async for found in self._attempt(wish, number):
                yield found
            number += 1
            if not wish.follow or wish.attempt or number > await self._newest(wish.job):
                return
            wish = replace(wish, after={})

    async def _newest(self, job: JobId) -> int:
        return await self._engine.query(lambda cluster, _: newest_attempt(cluster, job), after=Freshness.COMMITTED)

    async def _attempt(self, wish: PointWish, number: int) -> AsyncIterator[RankPoints]:
        found = await self._engine.query(
            lambda cluster, _: members(cluster, wish.job, number, wish.ranks), after=Freshness.COMMITTED
        )
        readings = {member.id: _Reading(member, wish.after.get(member.rank)) for member in found}
        with self._engine.signals.listen(wish.job, *readings) as listener:
            fired: Collection[str] = readings
            while True:
                over = await self._engine.query(
                    lambda cluster, _: complete_logs(cluster, readings), after=Freshness.COMMITTED
                )
                async for points in self._round([readings[each] for each in readings if each in fired], wish):
                    yield points
                if not wish.follow or all(each.at_end or each.execution in over for each in readings.values()):
                    return
                fired = await listener.wait()
                if wish.job in fired:
                    fired = readings

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
