"""Work that must not stop half-way, whatever becomes of those who wait for it."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def completed(work: Awaitable[T]) -> T:
    """What comes of some work; a caller who is cancelled meanwhile still waits for its end, and is cancelled then.

    The cancellation comes at the caller's next wait. What follows without one is done before: so memory agrees with
    what was stored.
    """
    own, doing = asyncio.current_task(), asyncio.ensure_future(work)
    assert own is not None
    cancellations = 0
    while not doing.done():
        try:
            await asyncio.wait([doing])
        except asyncio.CancelledError:
            cancellations += 1
            own.uncancel()
    for _ in range(cancellations):
        own.cancel()
    return doing.result()
