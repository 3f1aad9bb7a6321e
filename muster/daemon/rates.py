"""How fast somebody may go: token buckets, as pure decisions about times that are passed in."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

RATED_KEYS = 10_000
"""Most keys that are remembered; beyond it the one that has been quiet for longest begins anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many at once, and from then on so many per second."""

    burst: int
    per_second: float


class Buckets(Generic[Key]):
    """One bucket per key, each full at first.

    Of a bucket only the time is kept at which it is full again, and only while that lies ahead.
    """

    def __init__(self, rate: Rate, keys: int = RATED_KEYS) -> None:
        self._each = 1.0 / rate.per_second
        self._room = rate.burst * self._each
        self._keys = keys
        self._full_at: dict[Key, float] = {}
        """Ordered by when each key was last looked at."""

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, key: Key, now: float) -> float:
        """0.0 if there was one to take; else the seconds after which there will be, and nothing is taken."""
        full_at = max(self._full_at.pop(key, now), now) + self._each
        wait = full_at - now - self._room
        if wait > self._each * 1e-6:  # more than what rounding makes
            self._full_at[key] = full_at - self._each
            return wait
        self._full_at[key] = full_at
        if len(self._full_at) > self._keys:
            del self._full_at[next(iter(self._full_at))]
        return 0.0

    def give_back(self, key: Key) -> None:
        """What was taken last does not count after all."""
        if key in self._full_at:
            self._full_at[key] -= self._each
