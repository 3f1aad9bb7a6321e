"""The containers that are being started.

A gang runs when the last of it runs. Until then the engine has nothing better to do than to start it: whoever wants to
read what the first ones print, or to know how they end, can do so a moment later, for the engine keeps both.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LIMIT = 1.0
"""Seconds for which others wait at most; a start takes a tenth of that, more where the disk is slow."""


class Starts:
    """How many are under way in one engine."""

    def __init__(self) -> None:
        self._under_way = 0
        self._none = asyncio.Event()
        self._none.set()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Around a start."""
        self._under_way += 1
        self._none.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._none.set()

    async def over(self, limit: float = LIMIT) -> None:
        """Wait until none is under way, or for so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._none.wait()
