"""Seats: how many live streams are open at once, of one caller and of all; pure."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from muster.domain.errors import ExhaustedError

LIVE_STREAMS = 1_000
"""Live streams of a console."""
LIVE_STREAMS_OF_ONE = 8
"""Live streams of one token: a page has one."""


class LiveSeats:
    """Live streams that are open, counted by the tokens of their readers."""

    def __init__(self, most: int = LIVE_STREAMS, of_one: int = LIVE_STREAMS_OF_ONE) -> None:
        self._most = most
        self._of_one = of_one
        self._taken = Counter[str]()

    @property
    def taken(self) -> int:
        """How many streams are open."""
        return self._taken.total()

    @contextmanager
    def seat(self, token: str) -> Iterator[None]:
        """A stream of somebody, while the context lasts; raises ExhaustedError where there are enough of them."""
        if self._taken[token] >= self._of_one:
            raise ExhaustedError(f"{self._of_one} live streams of this token are open already; close one")
        if self.taken >= self._most:
            raise ExhaustedError(f"{self._most} live streams are open already; try again later")
        self._taken[token] += 1
        try:
            yield
        finally:
            self._taken[token] -= 1
            if not self._taken[token]:
                del self._taken[token]
