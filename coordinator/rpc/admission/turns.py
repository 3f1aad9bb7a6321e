"""Turns at reading a message; pure decisions.

gRPC buffers a message while somebody waits for it, and tells nobody how much of it is there. A message that nobody
waits for stops after its first few KiB. So the number of messages that are read bounds the bytes that are under way.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Waiter = TypeVar("Waiter", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How messages of one kind of callers are read."""

    at_once: int
    """Messages that are under way in all."""
    each: int
    """Messages of one caller among them."""
    within: float
    """Seconds in which a message must arrive once its turn has come."""
    hurried: float | None = None
    """The same while others wait for their turn; None: as long."""
    line: float | None = None
    """Seconds for which a call waits for its turn; None: as long as it lasts, as each turn before it ends."""


class Turns(Generic[Key, Waiter]):
    """The reader now and those who wait; callers with a free turn of their own follow each other in a circle."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._reads: dict[Key, int] = {}
        self._total = 0
        self._lines: dict[Key, deque[Waiter]] = {}
        """Ordered by whose turn comes next."""

    def take(self, key: Key, *, first: bool = False) -> bool:
        """Begin to read if a turn is free; `first` lets a caller read although all turns in all are taken."""
        own = self._reads.get(key, 0)
        if own >= self._reading.each or (self._total >= self._reading.at_once and not first):
            return False
        self._reads[key] = own + 1
        self._total += 1
        return True

    @property
    def patience(self) -> float:
        """Seconds in which a message must arrive that begins to be read now."""
        hurried = self._reading.hurried
        return hurried if hurried is not None and self._lines else self._reading.within

    def wait(self, key: Key, waiter: Waiter) -> None:
        """Stand in line behind one's own other calls."""
        self._lines.setdefault(key, deque()).append(waiter)

    def give_up(self, key: Key, waiter: Waiter) -> None:
        """Leave the line."""
        line = self._lines.get(key)
        if line is not None and waiter in line:
            line.remove(waiter)
            if not line:
                del self._lines[key]

    def leave(self, key: Key) -> tuple[Key, Waiter] | None:
        """End a turn; gives who has it from here on, if anybody waits for it."""
        if self._reads[key] == 1:
            del self._reads[key]
        else:
            self._reads[key] -= 1
        self._total -= 1
        return self._next() if self._lines else None

    def _next(self) -> tuple[Key, Waiter] | None:
        for key in self._lines:
            if self.take(key):
                line = self._lines.pop(key)
                waiter = line.popleft()
                if line:
                    self._lines[key] = line
                return key, waiter
            if self._total >= self._reading.at_once:
                break
        return None
