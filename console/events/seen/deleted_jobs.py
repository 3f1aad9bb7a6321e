"""The watch for jobs that are deleted: an event for each, put into the outbox once and for good."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from console.events.book import SubscriptionBook
from console.events.follower import deliveries_of
from console.events.outbox import EventOutbox
from console.events.seen.seen_jobs import SeenJob, SeenJobs
from console.mirror.follower import MirrorFollower
from console.upstream.fleet_id import FleetId
from muster.domain.feed import FeedPart
from muster.domain.notifications.happening import Happening

log = logging.getLogger(__name__)

DELETED_LOOKED_AT_EVERY = 1.0
"""Seconds between two looks for jobs that are gone, while anything changes."""


class DeletedJobs:
    """Which jobs were there, and which of them are no more."""

    def __init__(  # noqa: PLR0913 - one for each thing that an event passes
        self,
        mirror: MirrorFollower,
        fleet: FleetId,
        outbox: EventOutbox,
        book: SubscriptionBook,
        told: Callable[[Sequence[Happening]], None],
        *,
        pause: float = DELETED_LOOKED_AT_EVERY,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`told` hears what has happened, once it is in the outbox."""
        self._mirror = mirror
        self._fleet = fleet
        self._outbox = outbox
        self._book = book
        self._told = told
        self._pause = pause
        self._now = now

    async def run(self) -> None:
        """Look until cancelled; raises MusterError where the disk fails."""
        await self._book.known()
        known = [SeenJob.read(each) for each in await asyncio.to_thread(self._outbox.seen)]
        jobs = SeenJobs({each.job.id: each for each in known})
        with self._mirror.looking() as heard:
            while True:
                await self._look(jobs)
                await asyncio.sleep(self._pause)
                await heard.wait()
                heard.clear()

    async def _look(self, jobs: SeenJobs) -> None:
        mirror = self._mirror.current
        if mirror is None:
            return
        changes = jobs.look(mirror.of(FeedPart.JOBS))
        if not changes.new and not changes.gone:
            return
        now = self._now()
        fleet = await self._fleet.known() if changes.gone else ""
        happenings = [each.deleted(now, fleet) for each in changes.gone]
        deliveries = [each for told in happenings for each in deliveries_of(told, self._book.current)]
        new = {each.job.id: each.written for each in changes.new}
        gone = [each.job.id for each in changes.gone]
        await asyncio.to_thread(partial(self._outbox.see, new, gone, deliveries, now.timestamp()))
        jobs.note(changes)
        if happenings:
            self._told(happenings)
