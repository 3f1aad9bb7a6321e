"""What many streams leave behind when they end goes back to the system before others come.

A connection has some 60 KiB of buffers and touches little of them. The C library keeps what is freed and gives it to
the next connections as it is: after a few storms each of thousands would have all of its buffers in memory.
"5,000 nodes: coordinator memory" of `make bench ONLY=scale` pays for this.
"""

import asyncio
import gc
from collections.abc import Callable

from muster.lean import heap

MANY_ENDED_STREAMS = 100
"""Streams that have ended; below that it is not worth the trouble."""
TRIM_PAUSE = 0.4
"""Seconds from one look at what they left to the next; the last one comes when no more of them have ended since."""


class Leftovers:
    """Counts streams that end."""

    def __init__(
        self, give_back: Callable[[], None] = heap.give_back, many: int = MANY_ENDED_STREAMS, later: float = TRIM_PAUSE
    ) -> None:
        self._give_back = give_back
        self._many = many
        self._later = later
        self._ended = 0

    def one_more(self) -> None:
        """A stream is ending; gRPC still has to close its connection."""
        self._ended += 1
        if self._ended == self._many:
            self._look_later()

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(self._later, self._look, self._ended)

    def _look(self, seen: int) -> None:
        # A stream that was cut off leaves an exception that refers to itself, and with it all that the stream had.
        gc.collect(1)
        asyncio.get_running_loop().run_in_executor(None, self._give_back)
        if self._ended > seen:
            self._look_later()
        else:
            self._ended = 0
