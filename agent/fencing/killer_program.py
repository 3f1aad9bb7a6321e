"""The killer: kills user code that is overdue, whether or not its agent still lives.

Its agent tells it every change of the deadlines. It ends when the agent is gone and nothing is left of what was noted,
or when another agent has taken over, which it sees in the notes on disk. To kill it needs no disk.
"""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

from agent.core.deadlines import LONGEST_SLEEP, ExecutionDeadline, Notes, next_look, overdue, read
from agent.fencing.deadlines import mark_fenced, read_notes
from agent.fencing.kill import kill
from agent.runtimes.kernel.pids import boot_id

LONGEST_PACKET = 1 << 20

REPEAT = 0.1
"""Seconds until it looks again at what it has killed."""

KILLING_LIMIT = 0.2
"""Seconds that it waits for kills; one that takes longer goes on beside others, and beside news of its agent."""

READ_LIMIT = 1.0
"""Seconds that the disk has to tell whether another agent has taken over."""

KILLER_MARK_LIMIT = 0.2
"""Seconds that a kill waits for the disk."""

MESSAGE = (
    "killed by muster-killer: the agent had no word from the coordinator for too long, and did not stop it in time"
)


def main() -> None:
    """Take one's place beside the agent whose name is the first argument, and stay."""
    if os.fork():
        os._exit(0)
    Path("/proc/self/comm").write_text("muster-killer", encoding="ascii")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[2])) as line:
        DeadlineWatch(sys.argv[1], line).run()


class DeadlineWatch:
    """Over the deadlines of one agent."""

    def __init__(self, agent: str, line: socket.socket) -> None:
        self._agent = agent
        self._line = line
        self._attended = True
        """Whether the agent lives."""
        self._notes: dict[Path, Notes] = {}
        self._boot = boot_id()
        self._kills: dict[str, _Finding] = {}
        """Kills that are at work, by directory."""
        self._readings: dict[Path, _Finding] = {}
        """The last ones."""

    def run(self) -> None:
        """Stay as long as there is something to watch over."""
        pause: float | None = None
        while self._attended or self._notes:
            self._hear(pause)
            left = [each for state in tuple(self._notes) for each in self._look(state)]
            pause = REPEAT if left else self._next()

    def _next(self) -> float | None:
        """How long nothing has to be done."""
        at = _now()
        looks = [next_look(notes, at, self._boot) for notes in self._notes.values()]
        return min((look for look in looks if look is not None), default=None)

    def _hear(self, limit: float | None) -> None:
        """Wait for the agent, or for a deadline."""
        if not self._attended:
            time.sleep(LONGEST_SLEEP if limit is None else limit)
            return
        ready, _, _ = select.select([self._line], [], [], limit)
        while ready and self._attended:
            self._take(self._receive())
            ready, _, _ = select.select([self._line], [], [], 0)

    def _receive(self) -> bytes:
        try:
            return self._line.recv(LONGEST_PACKET)
        except ConnectionError:  # the agent was killed with something unread
            return b""

    def _take(self, packet: bytes) -> None:
        """Learn of changed deadlines, all of them before anything is killed: the last word counts."""
        self._attended = bool(packet)
        if packet:
            state, _, text = packet.partition(b"\n")
            self._notes[Path(os.fsdecode(state))] = read(text)

    def _look(self, state: Path) -> list[ExecutionDeadline]:
        """Kill what is overdue on one node; what still runs of it."""
        notes = self._notes[state]
        if not self._attended and self._replaced(state):
            del self._notes[state]
            return []
        late = overdue(notes, _now(), self._boot)
        left = self._kill(late)
        if not self._attended and not left and len(late) == len(notes.deadlines):
            del self._notes[state]  # nobody else takes the last ones off
        return left

    def _kill(self, late: tuple[ExecutionDeadline, ...]) -> list[ExecutionDeadline]:
        """Kill all of them beside each other, as one may take its time; those that are not known to be dead by now."""
        self._kills = {directory: work for directory, work in self._kills.items() if work.is_alive()}
        for each in late:
            if each.directory not in self._kills:
                self._kills[each.directory] = _Finding(partial(_killed, each))
        until = _now() + KILLING_LIMIT
        for each in late:
            self._kills[each.directory].join(max(0.0, until - _now()))
        return [each for each in late if not self._kills[each.directory].yes]

    def _replaced(self, state: Path) -> bool:
        """Whether another agent has taken over; where the disk does not tell, none could."""
        if state not in self._readings or not self._readings[state].is_alive():
            self._readings[state] = _Finding(partial(_has_other_notes, state, self._agent))
        self._readings[state].join(READ_LIMIT)
        return self._readings[state].yes


class _Finding(Thread):
    """Finds something out beside everything else, as disks and engines may hang."""

    def __init__(self, find: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self._find = find
        self.yes = False
        """What it has found; no until then, and where it cannot be found out."""
        self.start()

    def run(self) -> None:
        with suppress(OSError, ValueError):
            self.yes = self._find()


def _has_other_notes(state: Path, agent: str) -> bool:
    found = read_notes(state)
    return found is not None and found.agent != agent


def _killed(deadline: ExecutionDeadline) -> bool:
    """Kill it, if anything of it runs; whether it is dead."""
    return kill(deadline, lambda: _mark(Path(deadline.directory)))


def _mark(directory: Path) -> None:
    """Leave word, but do not wait long for a disk that hangs."""
    marking = Thread(target=mark_fenced, args=(directory, MESSAGE), daemon=True)
    marking.start()
    marking.join(KILLER_MARK_LIMIT)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
