"""Has runs counted: follows all events with the console's own token, from now on."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing

from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.domain.notifications.happening import EventPlace, Happening

log = logging.getLogger(__name__)

COUNTED_AGAIN = 5.0
"""Seconds until events are followed again after that went wrong."""


async def follow_events(client: Client, hear: Callable[[Sequence[Happening]], None]) -> None:
    """Have somebody hear of all events until cancelled, each once, whatever becomes of the coordinator.

    `client` asks with the console's own token.
    """
    said = ""
    place: EventPlace | None = None
    while True:
        try:
            async with aclosing(client.events.pages(after=place, follow=True)) as pages:
                async for happenings, reached in pages:
                    hear(happenings)
                    place = reached
        except MusterError as error:
            if str(error) != said:
                log.warning("nobody tells the console how attempts end", extra={"cause": str(error)})
            said = str(error)
        await asyncio.sleep(COUNTED_AGAIN)
