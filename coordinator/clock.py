"""The coordinator's clock: leases and fences are counted by it, so nobody can set it while it runs."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


def wall_time() -> datetime:
    """What the machine shows, which may be set at any moment."""
    return datetime.now(UTC)


def boot_time() -> float:
    """Seconds since the machine was started, with those that it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SteadyClock:
    """Begins with the time that the machine shows, and from then on does not follow when that is set."""

    def __init__(self, wall: Callable[[], datetime] = wall_time, boot: Callable[[], float] = boot_time) -> None:
        self._boot = boot
        self._began_at, self._began = wall(), boot()

    def now(self) -> datetime:
        """The time; never earlier than it was before."""
        return self._began_at + timedelta(seconds=self._boot() - self._began)
