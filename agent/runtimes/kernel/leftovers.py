"""What a program leaves running at its end. Used by supervisors: needs no event loop, and loads next to nothing."""

import math
import os
import time
from collections.abc import Callable, Iterator

from agent.runtimes.kernel.pids import Process
from agent.runtimes.kernel.subtree import descendants, strike

SURVIVAL_LIMIT = 30.0
"""Seconds after which a process that survives SIGKILL is said to hang in the kernel."""

KILL_PAUSE = 0.02
"""Seconds until processes that were killed and are still there are looked for again."""


class ProgramLeftovers:
    """What a program leaves running at its end: it may go on for a while, then it is killed."""

    def __init__(self, grace: Callable[[], float]) -> None:
        """Nothing yet; `grace` tells the seconds that a stop leaves it."""
        self._grace = grace
        self._until: float | None = None
        """When it is killed, and after that when it is looked at again; None: the program has not ended."""
        self._killing_until: float | None = None
        """When what survives is said to hang; None: nothing had to be killed."""
        self._graced = False
        """Whether a stop has put that off."""
        self._killed = 0
        self.hanging: tuple[int, ...] = ()
        """Processes that survive SIGKILL."""

    @property
    def untouched(self) -> bool:
        """Whether nothing was killed yet, and no stop has put that off."""
        return self._killing_until is None and not self._graced

    @property
    def due(self) -> bool:
        """Whether it is time to kill what is left."""
        return self._until is not None and time.monotonic() >= self._until

    @property
    def pause(self) -> float | None:
        """Milliseconds until then; None: the program has not ended."""
        return None if self._until is None else max(0.0, self._until - time.monotonic()) * 1000

    def wait(self, seconds: float) -> None:
        """Let it go on for so long at most, now that the program has ended."""
        self._until = min(time.monotonic() + seconds, self._until or math.inf)

    def kill(self) -> None:
        """Kill it, unless a stop lets it go on for longer."""
        now = time.monotonic()
        if self._killing_until is None:
            grace = self._grace()
            if grace > 0:
                self._until, self._graced = now + grace, True
                return
            self._killing_until = now + SURVIVAL_LIMIT
            self._killed = len(below_me())
        if strike(below_me) and now >= self._killing_until:
            self.hanging = tuple(each.pid for each in below_me())
        self._until = now + KILL_PAUSE

    def told(self) -> Iterator[str]:
        """What the log says of it."""
        if self._killed:
            yield f"killed {_processes(self._killed)} that the program had left running"
        if self.hanging:
            yield f"{_processes(len(self.hanging))} {self.hanging} hang in the kernel and survive SIGKILL"


def below_me() -> tuple[Process, ...]:
    """All that descends from this supervisor."""
    return descendants(os.getpid())


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{number} processes"
