"""What the coordinator is told of things that a node keeps: all of them in Hello, and then what changes."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Generic, TypeVar

Key = TypeVar("Key")
Thing = TypeVar("Thing")
Order = TypeVar("Order")

CHANGES_TOLD_EVERY = 2.0
"""Seconds after which a change is told, at the latest; nothing is said while nothing changes."""


async def next_order(orders: asyncio.Queue[Order]) -> Order | None:
    """An order as soon as there is one; None: there was none, and it is time to tell changes."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CHANGES_TOLD_EVERY):
            return await orders.get()
    return None


class ToldChanges(Generic[Key, Thing]):
    """Things of one kind, as far as they are known and as far as they were told."""

    def __init__(
        self,
        revision: Callable[[], int],
        look: Callable[[], Awaitable[Mapping[Key, Thing]]],
        send: Callable[[Collection[Thing], Collection[Key]], bool],
    ) -> None:
        """Know nothing yet.

        `revision` counts up whenever there is something to tell; `look` finds out what there is. `send` tells what is
        new and what is gone, and whether anybody was there to hear it.
        """
        self._now = revision
        self._look = look
        self._send = send
        self._revision = -1
        self._known: Mapping[Key, Thing] = {}
        self._told: Mapping[Key, Thing] = {}

    def all(self) -> Collection[Thing]:
        """All of them, for Hello; what is told from here on is what changes."""
        self._told = self._known
        return self._known.values()

    async def tell(self) -> None:
        """Tell what is other than what was told, if anything is; without a stream, the next Hello tells it."""
        if self._now() != self._revision:
            self._revision = self._now()
            self._known = await self._look()
        if self._known is self._told:
            return
        new = tuple(thing for key, thing in self._known.items() if self._told.get(key) != thing)
        gone = tuple(key for key in self._told if key not in self._known)
        if not (new or gone) or self._send(new, gone):
            self._told = self._known
