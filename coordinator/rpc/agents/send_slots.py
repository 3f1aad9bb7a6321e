"""Large messages go out a few at a time, because all at once they would not fit into memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lanes:
    """Each is held by one at a time, and for so many seconds at most: who is slow goes on, beside the others."""

    def __init__(self, count: int, patience: float) -> None:
        self._lanes = asyncio.Semaphore(count)
        self._patience = patience

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for a lane and hold it."""
        await self._lanes.acquire()
        held = True

        def leave() -> None:
            nonlocal held
            if held:
                held = False
                self._lanes.release()

        expiry = asyncio.get_running_loop().call_later(self._patience, leave)
        try:
            yield
        finally:
            expiry.cancel()
            leave()
