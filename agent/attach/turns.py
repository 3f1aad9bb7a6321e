"""Whoever moves many bytes without having to wait lets others have their turn."""

import asyncio

BYTES_OF_A_TURN = 1024 * 1024
"""Bytes after which everything else that is due comes first."""


class Turns:
    """Counts what one task moves in one direction."""

    def __init__(self) -> None:
        self._moved = 0

    def begin(self) -> None:
        """Note that others have just had their turn."""
        self._moved = 0

    async def count(self, size: int) -> None:
        """Note that bytes were moved; gives way where they are many."""
        self._moved += size
        if self._moved >= BYTES_OF_A_TURN:
            self._moved = 0
            await asyncio.sleep(0)
