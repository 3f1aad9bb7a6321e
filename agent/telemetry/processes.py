"""What some processes use together, where no cgroup is theirs alone. Formats: proc(5)."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from agent.telemetry.cgroups import CgroupCounts

_PROC = Path("/proc")
_RESIDENT = 1
"""The field of `statm` that counts the pages in memory."""


def counts_of(pids: Iterable[int], cpu_seconds: float, proc: Path = _PROC) -> CgroupCounts:
    """The counts of these processes, of which the CPU was counted already; those that have ended count as nothing.

    Pages that several of them share count for each. Blocks for as long as /proc takes.
    """
    memory = read = written = processes = 0
    may_look = False
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            memory += int((proc / str(pid) / "statm").read_text().split()[_RESIDENT]) * os.sysconf("SC_PAGE_SIZE")
            processes += 1
        with suppress(OSError, ValueError):
            facts = dict(line.split(": ") for line in (proc / str(pid) / "io").read_text().splitlines())
            read += int(facts["read_bytes"])
            written += int(facts["write_bytes"])
            may_look = True
    return CgroupCounts(
        cpu_seconds=cpu_seconds,
        memory=memory,
        read_bytes=read if may_look else None,
        written_bytes=written if may_look else None,
        processes=processes,
    )
