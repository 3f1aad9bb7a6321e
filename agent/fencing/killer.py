"""The agent's side of the killer: starts it, and tells it by when user code must be dead."""

import logging
import os
import select
import socket
import subprocess
from pathlib import Path
from threading import Lock

from agent.core.deadlines import Notes, written
from muster.daemon.own_programs import lean_command_of

log = logging.getLogger(__name__)

START_LIMIT = 20.0
"""Seconds in which it takes its place; it needs a twentieth of one, but the node may be busy."""
TELL_LIMIT = 2.0
"""Seconds in which it listens; one that was stopped, or hangs, is replaced."""


KILLER_PROGRAM = "agent.fencing.killer_program"


class Killer:
    """One for an agent, however many nodes it is; starts at the first need at the latest, and again if it was killed.

    Every call may block for a moment, and may come from any thread.
    """

    def __init__(self) -> None:
        self.name = f"{os.getpid()}-{os.urandom(8).hex()}"
        """Names this agent in its notes: killers of agents before it leave what it has noted to its own."""
        self._lock = Lock()
        self._line: socket.socket | None = None
        self._told: dict[Path, Notes] = {}

    @property
    def there(self) -> bool:
        """Whether it was started; that it was killed since shows when it is told something."""
        return self._line is not None

    def start(self) -> None:
        """Have it there by the time it is needed. Raises OSError."""
        with self._lock:
            if self._line is None:
                self._start()

    def tell(self, state: Path, notes: Notes) -> None:
        """Have it know the deadlines of the node with this state directory. Raises OSError if it cannot be had."""
        with self._lock:
            self._told[state] = notes
            if self._line is None:
                self._start()
                return
            try:
                self._send(state)
            except (ConnectionError, TimeoutError):
                log.warning("the killer was killed, or hangs; starting another one")
                self._start()

    def tell_at_once(self, state: Path, notes: Notes) -> bool:
        """Do what `tell` does if that takes no time; False: it would, and nothing was done. Never blocks."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._line is None or not select.select((), (self._line,), (), 0)[1]:
                return False
            self._told[state] = notes
            self._send(state)
        except OSError:
            return False  # `tell` finds out why
        finally:
            self._lock.release()
        return True

    def close(self, state: Path | None = None) -> None:
        """Let go of it, for one node or for all: it stays as long as anything is noted. Harmless when repeated."""
        with self._lock:
            self._told = {each: notes for each, notes in self._told.items() if state not in {None, each}}
            if not self._told:
                self._let_go()

    def _let_go(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _send(self, state: Path) -> None:
        assert self._line is not None
        self._line.send(os.fsencode(state.absolute()) + b"\n" + written(self._told[state]))

    def _start(self) -> None:
        """Start a program that forks the killer and ends, so that the killer is nobody's child."""
        self._let_go()
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(TELL_LIMIT)
        with its:
            try:
                subprocess.run(  # noqa: S603 (our own program)
                    lean_command_of(KILLER_PROGRAM, self.name, str(its.fileno())),
                    cwd="/",
                    env={},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(its.fileno(),),
                    start_new_session=True,
                    timeout=START_LIMIT,
                    check=True,
                )
            except (OSError, subprocess.SubprocessError) as error:
                ours.close()
                raise OSError(f"the killer cannot be started: {error}") from error
        self._line = ours
        for state in self._told:
            self._send(state)
