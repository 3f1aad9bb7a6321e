"""All processes that an execution has started, whatever sessions they made, and how all of them are killed.

Supervisor, killer and agent use it: it needs no event loop, and nothing but the standard library.
"""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agent.runtimes.kernel import confinement
from agent.runtimes.kernel.pids import Process, Stat, boot_id, cpu_seconds, stat

MARK = "MUSTER_EXECUTION_ID"
"""The variable that every process of an execution inherits."""

STOP_ROUNDS = 64
"""Rounds in which forking processes are stopped before they are killed; a few are enough for all but fork bombs."""

STRIKE_PAUSE = 0.01
"""Seconds between two strikes at processes that take a moment to die."""

LONGEST_ENVIRONMENT = 8 << 20
"""Bytes of an environment that are looked at; the kernel allows a quarter of the stack, 2 MiB as a rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtree:
    """How the processes of one execution are known.

    While its supervisor lives, all of them descend from it, as it inherits their orphans. Once it was killed, session,
    environment, user and cgroups tell, each with everything that descends from what they found.
    """

    supervisor: Process
    program: Process | None = None
    """The leader of the first session."""
    execution: str = ""
    """What the environment says; empty: nobody looks there."""
    user: int | None = None
    """A user as whom nothing else runs."""
    groups: tuple[str, ...] = ()
    """Cgroups in which nothing else runs."""

    def members(self) -> tuple[Process, ...]:
        """Processes that have not ended, without the supervisor; while that lives, each stands before its children."""
        if self.supervisor.runs:
            found = self._below_supervisor()
            if self.supervisor.runs:  # else its children may have been somebody else's by then
                return found
        table = _table()
        return _named(table, _closed(table, self._roots(table)) - {os.getpid(), self.supervisor.pid})

    def signal(self, number: signal.Signals) -> None:
        """Send a signal once to every process, also to those that are forked meanwhile.

        Whoever started another hears of it first: a shell that waits for a program would else end well with its end.
        """
        reached: set[Process] = set()
        for _ in range(STOP_ROUNDS):
            fresh = [each for each in self.members() if each not in reached]
            if not fresh:
                return
            _send(number, fresh)
            reached.update(fresh)

    def kill(self, limit: float) -> tuple[int, ...]:
        """Kill all of it; the pids that are still there after `limit` seconds, none as a rule."""
        until = time.monotonic() + limit
        while (left := self.strike()) and time.monotonic() < until:
            time.sleep(STRIKE_PAUSE)
        return tuple(each.pid for each in self.members()) if left else ()

    def strike(self) -> int:
        """Kill all that is found, without waiting for its end; how many that were."""
        if not self.supervisor.runs:  # else it would die as well, and nobody would know how the program ended
            for group in self.groups:
                confinement.kill(group)
        return strike(self.members)

    def _below_supervisor(self) -> tuple[Process, ...]:
        below = dict.fromkeys(descendants(self.supervisor.pid))
        if self.program is not None and self.program.runs:
            below |= dict.fromkeys((self.program, *descendants(self.program.pid)))
        return tuple(below)

    def _roots(self, table: Mapping[int, Stat]) -> set[int]:
        roots = self._of_session(table)
        if self.execution:
            wanted = f"{MARK}={self.execution}".encode()
            roots |= {pid for pid in table if wanted in _environment(pid)}
        for group in self.groups:
            roots |= confinement.members(group)
        if self.user is not None:
            roots |= {pid for pid in table if self.user in _users(pid)}
        return roots

    def _of_session(self, table: Mapping[int, Stat]) -> set[int]:
        """The members of the program's session.

        The kernel gives the leader's number to nobody else while anything is left of the session. So a process with
        this number that is not the leader proves that the session is gone.
        """
        leader = self.program
        if leader is None or leader.boot != boot_id():
            return set()
        found = stat(leader.pid)
        if found is not None and found.started != leader.started:
            return set()
        return {pid for pid, each in table.items() if each.session == leader.pid}


def cpu_seconds_of(subtree: Subtree) -> float:
    """Seconds of CPU that the processes of an execution have used, and those of their children that have ended."""
    return sum(cpu_seconds(each.pid) for each in subtree.members())


def strike(find: Callable[[], Collection[Process]]) -> int:
    """Kill what is found, and how many that were; they are stopped first, so that none can fork away from it."""
    stopped: set[Process] = set()
    for _ in range(STOP_ROUNDS):
        fresh = set(find()) - stopped
        if not fresh:
            break
        _send(signal.SIGSTOP, fresh)
        stopped |= fresh
    _send(signal.SIGKILL, stopped)
    return len(stopped)


def descendants(pid: int) -> tuple[Process, ...]:
    """All that descends from a process and has not ended, its children first."""
    try:
        found = _walk(pid)
    except FileNotFoundError:  # a kernel without lists of children
        table = _table()
        return _named(table, _closed(table, {pid}) - {pid})
    named = ((each, stat(each)) for each in found)
    return tuple(_process(each, known) for each, known in named if known is not None and known.runs)


def _walk(root: int) -> list[int]:
    """The numbers below a process; raises FileNotFoundError where the kernel has no lists of children."""
    found: list[int] = []
    waiting = deque([root])
    while waiting:
        for child in _children(waiting.popleft()):
            found.append(child)
            waiting.append(child)
    return found


def _children(pid: int) -> Sequence[int]:
    """Children of all threads of a process; those of one that is gone are its reaper's."""
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):  # noqa: PTH110 (as in pids)
        raise FileNotFoundError
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 (ten times faster)
            with suppress(OSError):
                children += map(int, _content(f"/proc/{pid}/task/{thread}/children").split())
    return children


def _table() -> dict[int, Stat]:
    """Everything that runs on the node."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 (ten times faster)
    found = ((pid, stat(pid)) for pid in pids)
    return {pid: each for pid, each in found if each is not None}


def _closed(table: Mapping[int, Stat], roots: Iterable[int]) -> set[int]:
    """The roots and all that descends from them."""
    children: dict[int, list[int]] = {}
    for pid, each in table.items():
        children.setdefault(each.parent, []).append(pid)
    found: set[int] = set()
    waiting = deque(roots)
    while waiting:
        pid = waiting.popleft()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, ()))
    return found


def _named(table: Mapping[int, Stat], pids: Iterable[int]) -> tuple[Process, ...]:
    return tuple(_process(pid, table[pid]) for pid in pids if pid in table and table[pid].runs)


def _process(pid: int, found: Stat) -> Process:
    return Process(pid=pid, started=found.started, boot=boot_id())


def _send(number: signal.Signals, targets: Iterable[Process]) -> None:
    for each in targets:
        with suppress(PermissionError):
            each.signal(number)


def _environment(pid: int) -> Sequence[bytes]:
    """What it was started with; empty where this process may not see it."""
    try:
        return _content(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return ()


def _users(pid: int) -> Sequence[int]:
    """Real, effective, saved and of the file system; none where there is no such process."""
    try:
        lines = _content(f"/proc/{pid}/status").splitlines()
    except OSError:
        return ()
    return next((tuple(map(int, line.split()[1:])) for line in lines if line.startswith(b"Uid:")), ())


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        size = 0
        while size < LONGEST_ENVIRONMENT and (piece := os.read(descriptor, 1 << 16)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)
