"""Processes by pid and start time, so that none is mistaken for a later one with the same number.

Needs no event loop: the supervisors of programs use it, too.
"""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_LONGEST = 4096
"""No such line is longer."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Stat:
    """What `/proc` tells of a process."""

    state: str
    started: int
    """When it was started, in clock ticks since the node was."""
    parent: int = 0
    session: int = 0

    @property
    def runs(self) -> bool:
        """Whether it has not ended, unread or not."""
        return self.state not in "ZX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of this start of the node."""

    pid: int
    started: int
    boot: str

    @property
    def runs(self) -> bool:
        """Whether it is still there and has not ended."""
        found = stat(self.pid)
        return found is not None and found.started == self.started and found.runs and self.boot == boot_id()

    def facts(self) -> dict[str, object]:
        """What names it, for JSON."""
        return {"pid": self.pid, "started": self.started, "boot": self.boot}

    def kill(self) -> None:
        """Send SIGKILL to it, and to nobody who got its number."""
        self.signal(signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it, and to nobody who got its number."""
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
            try:
                if self.runs:
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def process(pid: int) -> Process:
    """Name a process that is there: one of ours that nobody has waited for."""
    found = stat(pid)
    return Process(pid=pid, started=found.started if found else 0, boot=boot_id())


def stat(pid: int) -> Stat | None:
    """Look a process up; None where there is none of that number."""
    try:
        text = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(b")") + 2 :].split(maxsplit=20)  # the name before it may contain anything
    return Stat(state=chr(fields[0][0]), started=int(fields[19]), parent=int(fields[1]), session=int(fields[3]))


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that a process has used, and those of its children that it has waited for; 0: it is not there."""
    try:
        text = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = text[text.rindex(b")") + 2 :].split(maxsplit=16)
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _read(path: str) -> bytes:
    """Without the buffers of a file object, which every new supervisor would have to make its own memory for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)


@cache
def boot_id() -> str:
    """Names this start of the node."""
    return BOOT_ID.read_text(encoding="ascii").strip()
