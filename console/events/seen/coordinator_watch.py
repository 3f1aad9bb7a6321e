"""The watch over the coordinator: looks every little while whether it is heard, and tells when that changes."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from console.events.seen.coordinator_book import CoordinatorBook
from console.mirror.follower import MirrorFollower
from console.upstream.fleet_id import FleetId
from muster.domain.notifications.happening import EventPlace, Happening

COORDINATOR_LOOKED_AT_EVERY = 5.0
"""Seconds between two looks at whether the coordinator is heard."""


async def watch_coordinator(
    mirror: MirrorFollower,
    fleet: FleetId,
    tell: Callable[[Happening], None],
    *,
    pause: float = COORDINATOR_LOOKED_AT_EVERY,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Tell that the coordinator is away, and that it is back, until cancelled."""
    book, known = CoordinatorBook(), ""
    while True:
        heard = mirror.current is not None
        if heard:
            known = await fleet.known()  # it cannot be asked for once the coordinator is away
        event = book.note(now(), heard=heard)
        if event is not None:
            tell(Happening(event=event, place=EventPlace(), fleet=known))
        await asyncio.sleep(pause)
