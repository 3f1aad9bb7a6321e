"""The programs that a benchmark starts: each with a limit in time, told to end; bench/reaper.py ends what is left."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from muster.domain.errors import MusterError

GRACE = 15.0
"""Seconds between SIGTERM and SIGKILL."""
READY_LOOK = 0.005
"""Seconds between two looks whether a program serves."""
CLOCK = 2
"""CPUCLOCK_SCHED: with the complement of a process id above it, the number of that process's clock."""


class ProgramError(MusterError):
    """A program did not do what it was started for."""


def start(command: Sequence[object], log: Path, **more: str) -> "subprocess.Popen[bytes]":
    """A program that goes on, in a group of its own so that Ctrl-C reaches only us; `more` is for its environment."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **more},
            process_group=0,
        )


async def serving(program: "subprocess.Popen[bytes]", ready: Path, log: Path, within: float) -> str:
    """What a program writes into its ready file once it serves.

    Raises ProgramError with the end of its log where it ends before, and TimeoutError after so many seconds.
    """
    async with asyncio.timeout(within):
        while not (said := _said(program, ready, log)):
            await asyncio.sleep(READY_LOOK)
    return said


def _said(program: "subprocess.Popen[bytes]", ready: Path, log: Path) -> str:
    """What a ready file says; empty: it is not there yet. Raises ProgramError where it will never be."""
    if ready.exists():
        return ready.read_text(encoding="utf-8").strip()
    if program.poll() is not None:
        raise ProgramError(f"a program ended before it served: {log.read_text()[-2000:]}")
    return ""


async def finished(command: Sequence[object], limit: float, **more: str) -> str:
    """What a program printed; ProgramError if it fails or takes too long."""
    return await asyncio.to_thread(run, command, limit, more)


def run(command: Sequence[object], limit: float, more: Mapping[str, str] | None = None) -> str:
    """Do what `finished` does. Blocks."""
    words = list(map(str, command))
    environment = {**os.environ, **(more or {})}
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False, env=environment)
    except (subprocess.TimeoutExpired, OSError) as error:
        raise ProgramError(f"{words[0]}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise ProgramError(f"`{' '.join(words)[:200]}` ended with {done.returncode}: {said}")
    return done.stdout


@asynccontextmanager
async def ended_at_exit() -> AsyncIterator[list["subprocess.Popen[bytes]"]]:
    """A list of programs that are told to end, last first, and wait for, when the block is left."""
    programs: list[subprocess.Popen[bytes]] = []
    try:
        yield programs
    finally:
        await asyncio.shield(asyncio.to_thread(_end, programs[::-1]))


def _end(programs: Sequence["subprocess.Popen[bytes]"]) -> None:
    for each in programs:
        with suppress(ProcessLookupError):
            each.terminate()
    deadline = time.monotonic() + GRACE
    for each in programs:
        try:
            each.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def resident(pid: int) -> float:
    """MiB of a process in main memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    """CPU that all threads of a process have used, to the nanosecond; not its children."""
    return time.clock_gettime((~pid << 3) | CLOCK)
