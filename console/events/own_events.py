"""Events that the console itself has seen, on their way to the outbox."""

import asyncio
import time
from collections.abc import Callable, Sequence

from console.events.book import SubscriptionBook
from console.events.follower import deliveries_of
from console.events.outbox import EventOutbox
from muster.domain.errors import MusterError
from muster.domain.notifications.happening import Happening

OWN_EVENTS_WAITING = 1_000
"""Events of the console that wait for the outbox; further ones are told in the journal alone."""


class OwnEvents:
    """What the console has seen, until it is in the outbox; one that a subscription knows already stays as it is."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._waiting: asyncio.Queue[Happening] = asyncio.Queue(OWN_EVENTS_WAITING)
        self._clock = clock

    def tell(self, seen: Happening) -> None:
        """Have an event delivered to whoever wants it."""
        if not self._waiting.full():
            self._waiting.put_nowait(seen)

    async def deliver(
        self,
        outbox: EventOutbox,
        book: SubscriptionBook,
        told: Callable[[Sequence[Happening]], None],
    ) -> None:
        """Put events into the outbox until cancelled, and say so to `told`; raises MusterError if the disk fails."""
        await book.known()
        while True:
            seen = await self._waiting.get()
            try:
                await asyncio.to_thread(outbox.add, tuple(deliveries_of(seen, book.current)), self._clock())
            except MusterError:
                self.tell(seen)  # for when the disk works again
                raise
            told((seen,))
