"""The watch over quotas: asks every little while what projects hold, and tells who has reached a quota."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from console.events.seen.quotas import QuotaBook, reached_quotas
from console.upstream.fleet_id import FleetId
from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.domain.notifications.happening import EventPlace, Happening

log = logging.getLogger(__name__)

QUOTAS_LOOKED_AT_EVERY = 30.0
"""Seconds between two looks at what projects hold."""


async def watch_quotas(
    client: Callable[[], Awaitable[Client]],
    fleet: FleetId,
    tell: Callable[[Happening], None],
    *,
    pause: float = QUOTAS_LOOKED_AT_EVERY,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Tell of each quota that is reached, until cancelled."""
    book = QuotaBook()
    while True:
        try:
            units = await (await client()).projects.quotas()
        except MusterError as error:
            log.debug("quotas are not known now", extra={"cause": str(error)})
        else:
            for event in book.note(reached_quotas(units), now()):
                tell(Happening(event=event, place=EventPlace(), fleet=await fleet.known()))
        await asyncio.sleep(pause)
