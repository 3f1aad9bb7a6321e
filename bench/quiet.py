"""Waiting until nothing else uses the machine, for a while at most."""

import asyncio
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path

from bench.figures import Findings

IDLE = 0.10
"""Share of all CPUs in use at which the machine counts as quiet."""
LOOK = 1.5
"""Seconds of one look."""


async def quiet_machine(findings: Findings, patience: float) -> None:
    """Return when the machine is quiet, or after so many seconds with a remark that it is not."""
    deadline = time.monotonic() + patience
    while True:
        before = _cpu()
        await asyncio.sleep(LOOK)
        busy, total = (after - earlier for after, earlier in zip(_cpu(), before, strict=True))
        findings.busy = busy / max(total, 1.0)
        if findings.busy <= IDLE:
            return
        if time.monotonic() > deadline:
            load = os.getloadavg()[0]
            findings.remark(f"not quiet: {findings.busy:.0%} of the CPUs in use by others, load {load:.1f}")
            return


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
        "python": platform.python_version(),
        "at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _cpu() -> tuple[float, float]:
    """Ticks in use, and all ticks."""
    fields = [float(each) for each in _read("/proc/stat").splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return sum(fields) - idle, sum(fields)


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
