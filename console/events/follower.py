"""The follower: reads all events from the coordinator, and puts what subscriptions want of them into the outbox."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial

from console.events.book import SubscriptionBook
from console.events.mqtt.topics import events_topic
from console.events.outbox import EventOutbox, NewDelivery
from console.events.subscription import EventSubscription, MqttTarget
from muster.client.client import Client
from muster.documents import document
from muster.domain.errors import MusterError
from muster.domain.notifications.cloud_event import cloud_event
from muster.domain.notifications.happening import EventPlace, Happening

log = logging.getLogger(__name__)

FOLLOW_AGAIN_AFTER = 10.0
"""Seconds after which a broken stream of events is begun again, when the client has given it up."""

EventPage = tuple[tuple[Happening, ...], EventPlace]


class EventFollower:
    """Reads events, from where it was; at its first start, from what happens from then on."""

    def __init__(
        self,
        client: Callable[[], Awaitable[Client]],
        outbox: EventOutbox,
        book: SubscriptionBook,
        told: Callable[[Sequence[Happening]], None],
        *,
        pause: float = FOLLOW_AGAIN_AFTER,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`told` hears what has happened, once it is in the outbox."""
        self._client = client
        self._outbox = outbox
        self._book = book
        self._told = told
        self._pause = pause
        self._clock = clock
        self._followed = False

    async def run(self) -> None:
        """Follow until cancelled, whatever the coordinator does; raises MusterError where the disk fails."""
        await self._book.known()
        while True:
            place = await asyncio.to_thread(self._outbox.place)
            try:
                async with aclosing(self._pages(place)) as pages:
                    async for happenings, reached in pages:
                        await self._take(happenings, reached)
            except _FollowError as error:
                self._followed = False
                log.warning("events cannot be followed", extra={"cause": str(error)})
            await asyncio.sleep(self._pause)

    async def _pages(self, place: EventPlace | None) -> AsyncGenerator[EventPage, None]:
        """Pages of events; raises _FollowError for what goes wrong on the way to them."""
        try:
            client = await self._client()
            async with aclosing(client.events.pages(after=place, follow=True)) as pages:
                async for page in pages:
                    yield page
        except MusterError as error:
            raise _FollowError(str(error)) from error

    async def _take(self, happenings: Sequence[Happening], place: EventPlace) -> None:
        deliveries = tuple(each for told in happenings for each in deliveries_of(told, self._book.current))
        dropped = await asyncio.to_thread(partial(self._outbox.take, deliveries, place, self._clock()))
        if not self._followed:
            self._followed = True
            log.info("events are followed", extra={"place": str(place)})
        if dropped:
            log.error("deliveries were dropped, as too many wait", extra={"dropped": dropped})
        if happenings:
            self._told(happenings)


def deliveries_of(told: Happening, subscriptions: Sequence[EventSubscription]) -> Iterator[NewDelivery]:
    """A delivery for each subscription that wants an event."""
    wanting = [each for each in subscriptions if each.wants(told)]
    if not wanting:
        return
    event = cloud_event(told)
    body = json.dumps(document(event), ensure_ascii=False, separators=(",", ":")).encode()
    for each in wanting:
        head = f"{events_topic(told)}\n".encode() if isinstance(each.target, MqttTarget) else b""
        yield NewDelivery(subscription=each.name, event=event.id, subject=event.subject, body=head + body)


class _FollowError(Exception):
    """Why events cannot be followed now."""
