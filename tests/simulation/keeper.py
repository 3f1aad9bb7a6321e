"""The keeper of a node: kills user code that is overdue, whatever became of the agent."""

from collections.abc import Callable, Mapping

from muster.domain.ids import ExecutionId
from tests.simulation.world import Clock, Timer

LOOK = 0.5
"""Most seconds between a deadline and the kill."""


class Keeper:
    """Knows the deadlines that the agent noted on the node's disk, and outlives it."""

    def __init__(self, clock: Clock, name: str, kill: Callable[[ExecutionId], None]) -> None:
        self._clock = clock
        self._kill = kill
        self._chance = clock.world.chance(f"keeper of {name}")
        self._deadlines: dict[ExecutionId, float] = {}
        self._alarm: Timer | None = None

    def noted(self) -> Mapping[ExecutionId, float]:
        """What is on the disk, for an agent that starts."""
        return dict(self._deadlines)

    def note(self, deadlines: Mapping[ExecutionId, float]) -> None:
        """By when user code must be dead; what is not named any more has ended, or has no deadline."""
        if deadlines != self._deadlines:
            self._deadlines = dict(deadlines)
            self._wake()

    def _wake(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._deadlines:
            left = max(0.0, min(self._deadlines.values()) - self._clock.seconds) + LOOK * self._chance.random()
            self._alarm = self._clock.world.after(left / self._clock.rate, self._look)

    def _look(self) -> None:
        """Kill what is overdue, again and again as long as it is noted: it may have been started just now."""
        self._alarm = None
        for execution, deadline in self._deadlines.items():
            if deadline <= self._clock.seconds:
                self._kill(execution)
        self._alarm = self._clock.world.after(LOOK, self._look) if self._overdue() else None
        if self._alarm is None:
            self._wake()

    def _overdue(self) -> bool:
        return any(deadline <= self._clock.seconds for deadline in self._deadlines.values())
