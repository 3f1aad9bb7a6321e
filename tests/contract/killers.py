"""Killers of agents that run: which there are, agents that leave theirs alone, and when a process has ended."""

import os
import select
import time
from pathlib import Path

from agent.fencing.killer import KILLER_PROGRAM

LIMIT = 20.0
ROOT = Path(__file__).parents[2]
SOON = 0.3
ONCE_IT_IS_GONE = 2.0
"""Seconds that an agent needs to start, tell its killer and be killed; several times that."""
AGENT = """
import os, signal, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from agent.core.deadlines import read
from agent.fencing.killer import Killer
killer = Killer()
notes = read(sys.stdin.buffer.read())
killer.tell(Path({state!r}), notes)
os.kill(os.getpid(), signal.SIGKILL)
"""
"""The program of an agent that tells its killer what it reads, and is killed."""


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def killers(name: str) -> list[int]:
    """The killers of an agent."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(KILLER_PROGRAM.encode() in word for word in arguments) and name.encode() in arguments:
            found.append(int(path.parent.name))
    return found


def gone(pid: int) -> None:
    """Wait for the end of a process that is no child."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], LIMIT)[0], f"process {pid} is still there"
    finally:
        os.close(descriptor)
