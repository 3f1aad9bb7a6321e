"""How much an engine has worked: its turns, and how long its commits took."""

from collections.abc import Callable

from muster.domain.telemetry.coordinator_figures import COMMIT_BOUNDS
from muster.domain.telemetry.counted_times import CountedTimes


class WorkCounts:
    """Counts from the start of the engine on."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self.waiting = waiting
        """How many events and questions stand in line at this very moment."""
        self.commits = CountedTimes(COMMIT_BOUNDS)
        """How long commits took."""
        self.turns = 0
        """How often all that stood in line was taken in."""

    def turned(self) -> None:
        """One more turn has begun."""
        self.turns += 1
