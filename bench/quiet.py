"""Waiting until nothing else uses the machine, for a while at most; and what others use of it meanwhile."""

import asyncio
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

from bench.figures import Findings

IDLE = 0.10
"""Share of all CPUs in use at which the machine counts as quiet."""
LOOK = 1.5
"""Seconds of one look."""
SETTLES = 6.0
"""Seconds in which programs of the benchmark do what is left of the measurement before."""
KERNEL = 2
"""The process id of kthreadd, whose children work for whoever asks."""
COUNTED = 10_000_000
TICKS = os.sysconf("SC_CLK_TCK")


async def quiet_machine(findings: Findings, patience: float) -> None:
    """Return when the machine is quiet, or after so many seconds with a remark that it is not.

    What the benchmark itself has running may go on, like heartbeats of thousands, after a while to settle.
    """
    began = time.monotonic()
    while True:
        before, others = _cpu(), others_from_now()
        await asyncio.sleep(LOOK)
        busy, total = (after - earlier for after, earlier in zip(_cpu(), before, strict=True))
        waited, share = time.monotonic() - began, others()
        if busy <= IDLE * total or (share <= IDLE and waited > SETTLES):
            break
        if waited > patience:
            findings.remark(f"not quiet: others used {share:.0%} of the CPUs beforehand, load {os.getloadavg()[0]:.1f}")
            break
    findings.pace.append(counting())
    findings.others = others_from_now()


def counting() -> float:
    """Milliseconds that a CPU takes for counting to ten million: those of a virtual machine are not always as fast."""
    began = time.perf_counter()
    for _ in range(COUNTED):
        pass
    return (time.perf_counter() - began) * 1000


def others_from_now() -> Callable[[], float]:
    """Tells, whenever it is called, which share of all CPUs others have used since now."""
    began, before = time.monotonic(), _used_by_others()

    def share() -> float:
        seconds = max(time.monotonic() - began, 1 / TICKS) * (os.cpu_count() or 1)
        return min(max(_used_by_others() - before, 0.0) / seconds, 1.0)

    return share


def machine() -> Mapping[str, str]:
    """What the figures were taken on."""
    model = next(
        (line.partition(":")[2].strip() for line in _read("/proc/cpuinfo").splitlines() if "model name" in line), "?"
    )
    memory = int(_read("/proc/meminfo").split()[1]) / 2**20
    return {
        "CPUs": f"{os.cpu_count()} x {model}",
        "memory": f"{memory:.0f} GiB",
        "kernel": platform.release(),
        "python": f"{platform.python_version()} ({Path(sys.executable).resolve()})",
    }


def _used_by_others() -> float:
    """Seconds of CPU of all programs that are not below the reaper (bench/reaper.py), and what the hypervisor took."""
    ticks = ticks_of_others(dict(_processes()), {os.getppid(), os.getpid()})
    return (ticks + _fields()[7]) / TICKS


def ticks_of_others(processes: Mapping[int, tuple[int, int]], ours: AbstractSet[int]) -> int:
    """What was used by processes, given with parent and ticks each, that are not ours and not below one of ours.

    Programs that have ended count for the one that waited for them, so nothing is forgotten between two looks.
    """

    def is_ours(pid: int) -> bool:
        while pid in processes and pid not in ours:
            pid = processes[pid][0]
        return pid in ours

    return sum(ticks for pid, (_, ticks) in processes.items() if not is_ours(pid))


def _processes() -> Iterator[tuple[int, tuple[int, int]]]:
    """Each with its parent and the ticks that it and those whom it has waited for have used; not the kernel's own."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            # It may end meanwhile.
            with suppress(OSError):
                fields = _read(f"{entry}/stat").rpartition(")")[2].split()
                parent = int(fields[1])
                if KERNEL not in (parent, int(entry.name)):
                    yield int(entry.name), (parent, sum(map(int, fields[11:15])))


def _cpu() -> tuple[float, float]:
    """Ticks in use, and all ticks."""
    fields = _fields()
    idle = fields[3] + fields[4]
    return sum(fields) - idle, sum(fields)


def _fields() -> list[float]:
    """Ticks of all CPUs: user, nice, system, idle, waiting, two kinds of interrupts, taken by the hypervisor."""
    return [float(each) for each in _read("/proc/stat").splitlines()[0].split()[1:9]]


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")
