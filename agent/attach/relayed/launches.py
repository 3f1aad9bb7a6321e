"""Executions that are just being started come before the bytes of attachments."""

import asyncio
from collections.abc import Callable

LAUNCH_LASTS = 0.5
"""Seconds after a step of a start in which the next one may come."""

LARGE_PIECE = 16 * 1024
"""Bytes from which a piece waits; keys, and what programs print for people, never do."""

PIECE_PAUSE = 0.05
"""Seconds that a large piece waits meanwhile: a connection still carries 5 MB/s."""


class LaunchesFirst:
    """Slows attachments down while a node starts executions: every worker of a gang waits for the last one.

    A forward at full speed keeps whole CPUs busy, of the agent as of the programs on both sides of it. A launch is over
    in a fraction of a second, and nobody misses the bytes of that.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """`now` is a clock that never goes back, in seconds."""
        self._now = now
        self._until = now()

    def note(self) -> None:
        """A step of the start of an execution is about to be taken."""
        self._until = self._now() + LAUNCH_LASTS

    def pause(self, size: int) -> float:
        """Seconds that a piece of so many bytes waits now."""
        return PIECE_PAUSE if size >= LARGE_PIECE and self._now() < self._until else 0.0

    async def turn(self, size: int) -> None:
        """Wait until a piece of so many bytes may go on."""
        pause = self.pause(size)
        if pause:
            await asyncio.sleep(pause)
