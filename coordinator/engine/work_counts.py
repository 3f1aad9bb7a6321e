"""How much an engine has worked: its turns, and how long its commits took."""

from bisect import bisect_left
from collections.abc import Callable

from muster.domain.telemetry.coordinator_figures import COMMIT_BOUNDS


class WorkCounts:
    """Counts from the start of the engine on."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self.waiting = waiting
        """How many events and questions stand in line at this very moment."""
        self.turns = 0
        """How often all that stood in line was taken in."""
        self.commit_seconds = 0.0
        """How long all commits took together."""
        self._commits = [0] * (len(COMMIT_BOUNDS) + 1)

    @property
    def commits(self) -> tuple[int, ...]:
        """How many commits took at most so many seconds as each bound says, but more than the one before."""
        return tuple(self._commits)

    def turned(self) -> None:
        """One more turn has begun."""
        self.turns += 1

    def committed(self, seconds: float) -> None:
        """One more commit is durable, and took so long."""
        self._commits[bisect_left(COMMIT_BOUNDS, seconds)] += 1
        self.commit_seconds += seconds
