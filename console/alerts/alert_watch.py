"""The watch over alerts: looks at the fleet every few seconds, and wakes up those who want to know."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from console.alerts.alert import AlertSign
from console.alerts.alert_book import AlertBook
from console.alerts.signs import OF_MIRROR, coordinator_away, signs_of
from console.mirror.follower import MirrorFollower
from console.mirror.rows import EncodedJson, encoded
from console.telemetry.gangs.gang_watch import JobDifference
from muster.domain.fleet.access import Access
from muster.domain.notifications.happening import ToldJob

ALERTS_LOOKED_AT_EVERY = 5.0
"""Seconds between two looks for alerts."""


class AlertWatch:
    """The alerts of a console, while it runs."""

    def __init__(
        self,
        follower: MirrorFollower,
        differing: Callable[[], Iterable[tuple[ToldJob, JobDifference]]],
        more: Callable[[], Iterable[AlertSign]] = lambda: (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`differing` tells which ranks differ, and `more` signs of the console itself."""
        self._follower = follower
        self._differing = differing
        self._more = more
        self._now = now
        self._book = AlertBook()
        self._looking: set[asyncio.Event] = set()

    @property
    def book(self) -> AlertBook:
        """All alerts."""
        return self._book

    def look_now(self) -> None:
        """Look for what has begun and what has ended."""
        now, before = self._now(), self._book.newest
        mirror = self._follower.current
        if mirror is None:
            self._book.note(now, [coordinator_away(now), *self._more()], OF_MIRROR)
        else:
            self._book.note(now, [*signs_of(mirror, self._differing(), now), *self._more()])
        if self._book.newest != before:
            for event in self._looking:
                event.set()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.look_now()
            await asyncio.sleep(ALERTS_LOOKED_AT_EVERY)

    @contextmanager
    def viewing(self, grants: Mapping[str, Access], heard: asyncio.Event) -> Iterator["ViewedAlerts"]:
        """Look at alerts with these grants; `heard` is set at news."""
        self._looking.add(heard)
        try:
            yield ViewedAlerts(self._book, grants)
        finally:
            self._looking.discard(heard)


class ViewedAlerts:
    """How far one viewer of alerts has come."""

    def __init__(self, book: AlertBook, grants: Mapping[str, Access]) -> None:
        self._book = book
        self._grants = grants
        self._known = -1

    def news(self) -> EncodedJson | None:
        """What the viewer does not know yet; None: there is nothing."""
        found = self._book.since(self._known, self._grants)
        begins, self._known = self._known < 0, self._book.newest
        if found is None:
            return None
        return encoded({"anew": True, "alerts": found} if begins else {"alerts": found})
