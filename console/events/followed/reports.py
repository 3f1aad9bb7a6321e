"""Reports: the coordinator is told how deliveries to followed subscriptions went, so that everybody can look there."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from console.events.outbox import DeliveryOutcome
from console.events.subscription import key_of
from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.domain.notifications.subscription import DeliveryTry, ReportedDelivery

log = logging.getLogger(__name__)

MOST_UNREPORTED = 2_000
"""Outcomes that wait to be reported; of more, the oldest are not."""
REPORTED_AT_ONCE = 200
"""Outcomes of one report."""
REPORT_AGAIN_AFTER = 10.0
"""Seconds until a report that the coordinator has not taken is tried again."""


class DeliveryReports:
    """What is to be reported, in order."""

    def __init__(self, client: Callable[[], Awaitable[Client]], pause: float = REPORT_AGAIN_AFTER) -> None:
        self._client = client
        self._pause = pause
        self._waiting: deque[ReportedDelivery] = deque(maxlen=MOST_UNREPORTED)
        self._new = asyncio.Event()

    def note(self, outcome: DeliveryOutcome) -> None:
        """Have an outcome reported, if it is of a subscription of the coordinator."""
        key = key_of(outcome.subscription)
        if key is None:
            return
        at = datetime.fromtimestamp(outcome.at, UTC)
        tried = DeliveryTry(
            event=outcome.event,
            at=at,
            taken=outcome.well,
            told=outcome.told,
            status=outcome.status,
            took=timedelta(milliseconds=round(outcome.took * 1000)),
        )
        project, name = key
        self._waiting.append(ReportedDelivery(project=project, name=name, outcome=tried))
        self._new.set()

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            await self._new.wait()
            self._new.clear()
            while self._waiting:
                await self._report()

    async def _report(self) -> None:
        sent = [self._waiting.popleft() for _ in range(min(len(self._waiting), REPORTED_AT_ONCE))]
        try:
            await (await self._client()).notifications.report(sent)
        except MusterError as error:
            log.warning("deliveries are not reported for now", extra={"cause": str(error)})
            room = MOST_UNREPORTED - len(self._waiting)
            self._waiting.extendleft(reversed(sent[-room:] if room else ()))
            await asyncio.sleep(self._pause)
