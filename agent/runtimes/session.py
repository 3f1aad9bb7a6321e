"""The processes of one session on this node: who they are, signals to all of them, waiting for their end.

A program that was started in a session of its own leads it, and all that it starts belongs to it, whatever process
groups they make, unless they leave it on purpose as daemons do.
"""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session, named so that it is never mistaken for a later one with the same number."""

    leader: int
    """Pid of the program that leads it, and so its number."""
    started: int
    """When the leader started, in clock ticks since the node did."""
    boot: str
    """Which start of the node that is."""

    @property
    def leader_alive(self) -> bool:
        """Whether the leader is still there, or has ended unread."""
        found = _stat(self.leader)
        return found is not None and found.started == self.started and self.boot == boot_id()

    def members(self) -> tuple[int, ...]:
        """Pids of all that runs in it.

        The kernel gives the leader's number to nobody else while anything is left of the session. So a process with
        this number that is not the leader proves that the session is gone.
        """
        found = _stat(self.leader)
        if found is not None and found.started != self.started:
            return ()
        return tuple(pid for pid in _pids() if _session_of(pid) == self.leader and _runs(pid))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal once to every process in it."""
        members = self.members()
        if not members:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, number)
        for pid in members:
            with suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != self.leader:
                    os.kill(pid, number)

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
                    self.signal(signal.SIGKILL)
                    for pid in members:
                        await _ended(pid)
        return self.members()


def session_of(leader: int) -> Session:
    """The session that a process of ours leads; it must not have been waited for yet."""
    found = _stat(leader)
    return Session(leader=leader, started=found.started if found else 0, boot=boot_id())


@cache
def boot_id() -> str:
    """Names this start of the node."""
    return BOOT_ID.read_text(encoding="ascii").strip()


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    started: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the name before it may contain anything
    return _Stat(state=fields[0].decode(), started=int(fields[19]))


def _pids() -> tuple[int, ...]:
    return tuple(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 (ten times faster)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _runs(pid: int) -> bool:
    found = _stat(pid)
    return found is not None and found.state not in "ZX"


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
