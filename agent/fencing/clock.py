"""The clock of fencing: it goes on while the machine sleeps, and nobody sets it."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Counts CLOCK_BOOTTIME; one that is quickened lets hours of fencing pass in seconds, for trials."""

    pace: float = 1.0

    def now(self) -> float:
        """Seconds since some moment before the machine was started."""
        return self.shown(time.clock_gettime(time.CLOCK_BOOTTIME))

    def real(self, seconds: float) -> float:
        """What a time, or a span, of this clock is in seconds of CLOCK_BOOTTIME."""
        return seconds / self.pace

    def shown(self, seconds: float) -> float:
        """What this clock makes of a time, or a span, of CLOCK_BOOTTIME."""
        return seconds * self.pace
