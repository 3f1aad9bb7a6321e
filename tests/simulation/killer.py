"""The killer of a node: kills user code that is overdue, whatever became of the agent."""

from collections.abc import Callable, Mapping

from agent.core.deadlines import LONGEST_SLEEP, ExecutionDeadline, Notes, next_look, overdue
from muster.domain.ids import ExecutionId
from tests.simulation.world import Clock, Timer

BOOT = "this boot"
REPEAT = 0.1
"""Seconds until it looks again at what it has killed, as in `agent/fencing/killer_program.py`."""
LAG = 0.3
"""Most seconds by which it is late."""


class Killer:
    """Knows the deadlines that the agent noted, and outlives it; a reboot leaves it with nothing to keep."""

    def __init__(self, clock: Clock, name: str, kill: Callable[[ExecutionId], None]) -> None:
        self._clock = clock
        self._kill = kill
        self._chance = clock.world.chance(f"killer of {name}")
        self._deadlines: dict[ExecutionId, float] = {}
        self._notes = Notes(boot=BOOT, agent="")
        self._alarm: Timer | None = None

    def noted(self) -> Mapping[ExecutionId, float]:
        """What is on the disk, for an agent that starts."""
        return dict(self._deadlines)

    def note(self, deadlines: Mapping[ExecutionId, float]) -> None:
        """Note by when user code must be dead; what is not named any more has ended, or has no deadline."""
        if deadlines == self._deadlines:
            return
        self._deadlines = dict(deadlines)
        entries = (
            ExecutionDeadline(execution=execution, dead_by=at, directory="") for execution, at in deadlines.items()
        )
        self._notes = Notes(boot=BOOT, agent="", deadlines=tuple(entries))
        self._wake()

    def _wake(self) -> None:
        """Plan the next look; of looks that find nothing, those before the next deadline are left out."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        pause = next_look(self._notes, self._clock.seconds, BOOT)
        if pause is None:
            return
        ahead = [at - self._clock.seconds for at in self._deadlines.values()]
        if pause == LONGEST_SLEEP and min(ahead) > 0:
            pause = min(ahead)
        self._rest(pause + LAG * self._chance.random())

    def _rest(self, pause: float) -> None:
        self._alarm = self._clock.world.after(pause / self._clock.rate, self._look)

    def _look(self) -> None:
        """Kill what is overdue, again and again as long as it is noted: it may have been started just now."""
        self._alarm = None
        for deadline in overdue(self._notes, self._clock.seconds, BOOT):
            self._kill(ExecutionId(deadline.execution))
        self._wake()
