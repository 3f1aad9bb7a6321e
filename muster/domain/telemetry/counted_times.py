"""Times that are counted up to some bounds, as histograms show them."""

from bisect import bisect_left
from collections.abc import Sequence


class CountedTimes:
    """How many of some times lie up to each bound, and how long all of them are together."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """None yet; `bounds` are seconds, the shortest first."""
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """How many are at most as long as each bound, but longer than the one before; the last: longer than all."""
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.seconds += seconds
