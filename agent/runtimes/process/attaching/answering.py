"""The companions of one program as its supervisor has them: one started with it, another when an agent calls for one.

An agent calls with a file in the execution's directory and a signal, and listens at a named pipe there. So any agent
can, also one that was started later, and a program to which nobody attaches has neither of them. The supervisor waits
for nobody: what the program prints goes on being written down.
Used by supervisors: needs no event loop, and nothing but the standard library.
"""

import json
import os
import signal
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass, field

from agent.executions.layout import COMPANION_ANSWER, COMPANION_CALL
from agent.runtimes.kernel.pids import Process, process
from agent.runtimes.kernel.subtree import descendants, strike

LONGEST_CALL = 64 * 1024
"""Bytes of a call."""

LONGEST_ANSWER = 4096
"""Bytes of an answer, so few that a pipe takes all of them at once or none."""

_LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionStart:
    """A companion that is to be started."""

    command: tuple[str, ...]
    """Words of the program; the first is the path of its program."""
    ticket: str = field(repr=False)
    """What it shows at the door."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionCall:
    """A companion that an agent calls for."""

    number: str
    """What tells its answer from those to other calls."""
    start: CompanionStart

    def text(self) -> bytes:
        """The call as it stands in its file."""
        start = self.start
        return json.dumps({"number": self.number, "command": start.command, "ticket": start.ticket}).encode()


class ProgramCompanions:
    """Programs that end with user code: the one that was called for with all that it has started."""

    def __init__(self, directory: str, start: Callable[[CompanionStart], int], beside: int = 0) -> None:
        """Have the one that was started with the program, if its pid is given.

        `start` starts another one, tells its pid, and raises OSError or ValueError.
        """
        self._directory = directory
        self._start = start
        self._beside = beside
        self._called = 0
        """The one that was called for last."""

    def ended(self, pids: Container[int]) -> None:
        """Know that these children of the supervisor have ended."""
        if self._beside in pids:
            self._beside = 0
        if self._called in pids:
            self._called = 0

    def end(self) -> None:
        """End them, as the program has ended; what gang commands left running is ended with what the program left."""
        if self._beside:
            os.kill(self._beside, signal.SIGKILL)
        self._end_called()

    def answer(self, *, runs: bool) -> None:
        """Start the companion that an agent calls for, if one does and the program runs, and say what came of it."""
        call = _call(self._directory)
        if call is None:
            return
        reason = "" if runs else "user code has ended"
        if runs:
            self._end_called()  # nobody calls for another one while this one is at the door
            try:
                self._called = self._start(call.start)
            except (OSError, ValueError) as problem:
                reason = getattr(problem, "strerror", None) or str(problem)
        _say(self._directory, call.number, reason)

    def _end_called(self) -> None:
        if self._called:
            pid, self._called = self._called, 0
            strike(lambda: _with_descendants(pid))


def _with_descendants(pid: int) -> tuple[Process, ...]:
    """One that has ended keeps its number until the supervisor waits for it."""
    it = process(pid)
    return (it, *descendants(pid)) if it.runs else descendants(pid)


def _call(directory: str) -> CompanionCall | None:
    """The call that waits, which nobody finds any more; None: there is none that can be understood."""
    path = f"{directory}/{COMPANION_CALL}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            said = json.loads(os.read(descriptor, LONGEST_CALL))
        finally:
            os.close(descriptor)
        os.unlink(path)  # noqa: PTH108 - a path object costs more than all else here
        start = CompanionStart(command=tuple(map(str, said["command"])), ticket=str(said["ticket"]))
        return CompanionCall(number=str(said["number"]), start=start)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _say(directory: str, number: str, reason: str) -> None:
    """Tell the agent; whether it still listens makes no difference here."""
    with suppress(OSError):
        pipe = os.open(f"{directory}/{COMPANION_ANSWER}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(pipe, json.dumps({"number": number, "reason": reason[:_LONGEST_REASON]}).encode() + b"\n")
        finally:
            os.close(pipe)
