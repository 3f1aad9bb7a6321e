"""Garbage is looked for once it has become quiet after much has happened, and at no other time."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import suppress

from coordinator.tuning.garbage import BUSY, not_looked_for, tidy

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


async def test_nothing_is_looked_for_while_a_start_loads() -> None:
    with not_looked_for():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_start_that_fails_leaves_things_as_they_were() -> None:
    with suppress(ValueError), not_looked_for():
        raise ValueError("the database is damaged")
    assert gc.isenabled()
