"""The watcher of gangs: finds which run from the samples of nodes, follows what they print, and tells who differs."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

from console.telemetry.gangs.gang_watch import WATCHED_POINTS, GangWatch, JobDifference
from console.telemetry.history.bands import GangBands
from console.upstream.fleet_id import FleetId
from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.domain.ids import AttemptId, JobId
from muster.domain.notifications.happening import EventPlace, Happening, ToldJob
from muster.domain.telemetry.sample import NodeSample, Sample

log = logging.getLogger(__name__)

GANGS_LOOKED_AT_EVERY = 10.0
"""Seconds between two looks at all gangs."""
GANG_FORGOTTEN_AFTER = timedelta(minutes=10)
"""The time after which nothing is known any more of a gang of which no node tells."""
GANGS_FOLLOWED = 64
"""Gangs whose points are followed; of the others what they use is compared alone."""
RANKS_FOLLOWED = 256
"""Ranks of a gang whose points are followed, the first ones."""
POINTS_FOLLOWED_AGAIN = 30.0
"""Seconds until the points of a gang are followed again after that went wrong."""


class GangWatcher:
    """All gangs that run: what their ranks use, and which of them differs."""

    def __init__(
        self,
        client: Client,
        told: Callable[[Happening], None] | None = None,
        keep: Callable[[AttemptId, GangBands], None] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`client` asks with the console's own token; `told` hears of each rank that differs, `keep` of
        what the ranks of each gang use.
        """
        self._client = client
        self._told = told
        self._keep = keep
        self._now = now
        self._gangs: dict[AttemptId, GangWatch | None] = {}
        """None: it has one rank."""
        self._heard_at: dict[AttemptId, datetime] = {}
        self._unknown: dict[AttemptId, None] = {}
        """Attempts that somebody has to ask about."""
        self._new = asyncio.Event()
        self._followed: dict[AttemptId, asyncio.Task[None]] = {}
        """The tasks that follow the points of attempts."""
        self._fleet = FleetId(self._asking)

    def hear(self, batch: Sequence[NodeSample]) -> None:
        """Take in what nodes use."""
        now = self._now()
        for _, sample in batch:
            for execution, _ in sample.executions:
                if (place := _place_of(execution)) is not None:
                    self._hear(*place, sample, now)

    def differences(self, job: JobId) -> list[JobDifference]:
        """What differs, or did, in the attempts of a job that run or did a moment ago."""
        gangs = [gang for attempt, gang in self._gangs.items() if attempt.job == job and gang is not None]
        return [each for gang in gangs for each in gang.differences]

    def differing(self) -> Iterator[tuple[ToldJob, JobDifference]]:
        """What differs in any gang, or did a moment ago, with its job."""
        for gang in self._gangs.values():
            if gang is not None:
                for each in gang.differences:
                    yield gang.told, each

    async def run(self) -> None:
        """Watch until cancelled, whatever becomes of the coordinator."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask(tasks), name="gangs that run")
            tasks.create_task(self._look(), name="looks at gangs")

    async def look_now(self) -> None:
        """Look at all gangs, and tell of what has begun to differ."""
        now = self._now()
        for attempt, heard_at in list(self._heard_at.items()):
            if now - heard_at > GANG_FORGOTTEN_AFTER:
                self._forget(attempt)
                continue
            gang = self._gangs.get(attempt)
            if gang is not None and self._keep is not None and (bands := gang.bands(now)).bands:
                self._keep(attempt, bands)
            if gang is not None and (begun := gang.look(now)):
                for event in gang.events(begun):
                    log.warning(
                        "a rank differs", extra={"job": event.job, "attempt": event.attempt, "what": event.text}
                    )
                    happening = Happening(
                        event=event, place=EventPlace(), fleet=await self._fleet.known(), job=gang.told
                    )
                    if self._told is not None:
                        self._told(happening)
            await asyncio.sleep(0)  # others have their turn

    async def ask_now(self) -> None:
        """Ask the coordinator about the attempts that nobody knows yet."""
        while self._unknown:
            attempt = next(iter(self._unknown))
            del self._unknown[attempt]
            try:
                self._gangs[attempt] = await self._asked(attempt)
            except MusterError as error:
                log.debug("a gang is not watched yet", extra={"job": attempt.job, "cause": str(error)})

    async def _asking(self) -> Client:
        return self._client

    def _hear(self, attempt: AttemptId, rank: int, sample: Sample, now: datetime) -> None:
        self._heard_at[attempt] = now
        if attempt not in self._gangs:
            self._unknown[attempt] = None
            self._new.set()
        elif (gang := self._gangs[attempt]) is not None:
            gang.hear(rank, sample, now)

    async def _asked(self, attempt: AttemptId) -> GangWatch | None:
        """The watch over an attempt; raises MusterError while nothing can be said of it."""
        job = await self._client.jobs.get(attempt.job, attempt=attempt.number)
        view = next((each for each in job.attempts if each.number == attempt.number), None)
        if view is None or view.released_at is None:
            raise MusterError("it is not released yet")
        return GangWatch(job, view) if len(view.executions) > 1 else None

    async def _ask(self, tasks: asyncio.TaskGroup) -> None:
        """Find out about gangs that are new, and follow what the first ones print."""
        while True:
            await self._new.wait()
            self._new.clear()
            await self.ask_now()
            for attempt, gang in self._gangs.items():
                if gang is not None and attempt not in self._followed and len(self._followed) < GANGS_FOLLOWED:
                    self._followed[attempt] = tasks.create_task(self._points(gang), name=f"points of {attempt.job}")

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(GANGS_LOOKED_AT_EVERY)
            await self.look_now()

    def _forget(self, attempt: AttemptId) -> None:
        del self._heard_at[attempt]
        self._gangs.pop(attempt, None)
        if (following := self._followed.pop(attempt, None)) is not None:
            following.cancel()
            self._new.set()  # another one can be followed in its place

    async def _points(self, gang: GangWatch) -> None:
        while True:
            try:
                points = self._client.metrics.follow(
                    gang.attempt.job,
                    ranks=range(min(gang.size, RANKS_FOLLOWED)),
                    most=WATCHED_POINTS,
                    attempt=gang.attempt.number,
                )
                async with aclosing(points) as told:
                    async for each in told:
                        gang.print(each.rank, each.points)
            except MusterError as error:
                log.debug("points are not followed", extra={"job": gang.attempt.job, "cause": str(error)})
                await asyncio.sleep(POINTS_FOLLOWED_AGAIN)
            else:
                return  # the logs are complete


def _place_of(execution: str) -> tuple[AttemptId, int] | None:
    """Which attempt and rank an id names; None: it is none, as nodes can say anything."""
    job, *numbers = execution.rsplit("-", 2)
    if len(numbers) != 2 or not all(each.isascii() and each.isdecimal() and len(each) < 10 for each in numbers):  # noqa: PLR2004 - attempt and rank; more digits are none
        return None
    return AttemptId(JobId(job), int(numbers[0])), int(numbers[1])
