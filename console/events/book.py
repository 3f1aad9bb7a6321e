"""The book of subscriptions: those of the console's file, and those that it follows, as they are at each moment."""

import asyncio
from collections.abc import Sequence

from console.events.subscription import EventSubscription


class SubscriptionBook:
    """All subscriptions that are served; those that are followed may be other ones any time."""

    def __init__(self, own: Sequence[EventSubscription] = ()) -> None:
        """`own` are the subscriptions of the console's file."""
        self._own = tuple(own)
        self._followed: tuple[EventSubscription, ...] = ()
        self._known = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def own(self) -> tuple[EventSubscription, ...]:
        """The subscriptions of the console's file."""
        return self._own

    @property
    def current(self) -> tuple[EventSubscription, ...]:
        """All that are served now."""
        return (*self._own, *self._followed)

    def follow(self, followed: Sequence[EventSubscription]) -> None:
        """Serve these beside those of the file from now on, and no others."""
        self._followed = tuple(followed)
        self._known.set()
        self._changed.set()

    def named(self, name: str) -> EventSubscription | None:
        """The subscription of that name; None: there is none now."""
        return next((each for each in self.current if each.name == name), None)

    @property
    def is_known(self) -> bool:
        """Whether it is known which are followed, if only that none are."""
        return self._known.is_set()

    async def known(self) -> None:
        """Wait until it is known which are followed."""
        await self._known.wait()

    async def changed(self) -> None:
        """Wait until others are served than when this was asked last."""
        await self._changed.wait()
        self._changed.clear()
