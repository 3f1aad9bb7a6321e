"""Garbage is looked for once it has become quiet after much has happened, and at no other time."""

import asyncio
from collections.abc import Iterator

from coordinator.garbage import BUSY, tidy

LOOK = 1e-6
MUCH = BUSY * LOOK * 2
LITTLE = BUSY * LOOK / 10


class Loop:
    """How long an event loop has worked, look for look; at the end nothing more comes."""

    def __init__(self, *looks: float) -> None:
        self._looks: Iterator[float] = iter((0.0, *looks))
        self._worked = 0.0
        self.seen = 0
        self.over = asyncio.Event()
        self.collected_after: list[int] = []

    def used(self) -> float:
        look = next(self._looks, None)
        if look is None:
            self.over.set()
        else:
            self.seen += 1
            self._worked += look
        return self._worked

    def collect(self) -> None:
        if not self.over.is_set():
            self.collected_after.append(self.seen - 1)


async def collected_after(*looks: float) -> list[int]:
    loop = Loop(*looks)
    tidying = asyncio.create_task(tidy(loop.used, loop.collect, look=LOOK))
    await loop.over.wait()
    tidying.cancel()
    return loop.collected_after


async def test_nothing_is_looked_for_while_little_happens() -> None:
    assert await collected_after(LITTLE, LITTLE, LITTLE) == []


async def test_it_is_looked_for_in_the_first_quiet_moment_after_much_has_happened() -> None:
    assert await collected_after(MUCH, MUCH, LITTLE, LITTLE, LITTLE) == [3]


async def test_it_is_not_looked_for_while_much_goes_on_happening() -> None:
    assert await collected_after(LITTLE, MUCH, MUCH, MUCH) == []
