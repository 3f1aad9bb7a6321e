"""The processes of one session on this node: who they are, signals to all of them, waiting for their end.

A program that was started in a session of its own leads it, and all that it starts belongs to it, whatever process
groups they make, unless they leave it on purpose as daemons do.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.runtimes.pids import Process, boot_id, process, stat


@dataclass(frozen=True, slots=True)
class Session:
    """A session, named by its leader so that it is never mistaken for a later one with the same number."""

    leader: Process

    def members(self) -> tuple[int, ...]:
        """Pids of all that runs in it.

        The kernel gives the leader's number to nobody else while anything is left of the session. So a process with
        this number that is not the leader proves that the session is gone.
        """
        found = stat(self.leader.pid)
        if self.leader.boot != boot_id() or (found is not None and found.started != self.leader.started):
            return ()
        return tuple(pid for pid in _pids() if _session_of(pid) == self.leader.pid and _runs(pid))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal once to every process in it."""
        _send(number, self.leader.pid, self.members())

    async def ended(self) -> None:
        """Wait until nothing runs in it."""
        while members := self.members():
            for pid in members:
                await _ended(pid)

    async def kill(self, limit: float) -> tuple[int, ...]:
        """Kill all of it; the pids that are still there after `limit` seconds, none as a rule."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while members := self.members():
                    _send(signal.SIGKILL, self.leader.pid, members)
                    for pid in members:
                        await _ended(pid)
                return ()
        return self.members()


async def kill_all_of(uid: int, limit: float) -> tuple[int, ...]:
    """Kill whatever a user runs, in whatever session; the pids that are still there after `limit` seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit):
            while pids := _of_user(uid):
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                for pid in pids:
                    await _ended(pid)
    return _of_user(uid)


def session_of(leader: int) -> Session:
    """The session that a process leads; nobody must have waited for it yet."""
    return Session(process(leader))


def _send(number: signal.Signals, leader: int, members: Sequence[int]) -> None:
    """Once to each."""
    if not members:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    for pid in members:
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) != leader:
                os.kill(pid, number)


def _pids() -> tuple[int, ...]:
    return tuple(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 (ten times faster)


def _of_user(uid: int) -> tuple[int, ...]:
    return tuple(pid for pid in _pids() if uid in _uids(pid) and _runs(pid))


def _uids(pid: int) -> tuple[int, ...]:
    """Real, effective, saved and of the file system; none where there is no such process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return next((tuple(map(int, line.split()[1:])) for line in status.splitlines() if line.startswith("Uid:")), ())


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _runs(pid: int) -> bool:
    found = stat(pid)
    return found is not None and found.runs


async def _ended(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
