"""Programs of the fleet on this machine: started, watched, and stopped in order."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from muster.cli.local.claim import Claim
from muster.cli.output.screen import say
from muster.daemon.own_programs import command_of, lean_command_of
from muster.domain.errors import MusterError

STOP_PATIENCE = 20.0
"""Seconds between SIGTERM and SIGKILL; longer than the default grace period of a job."""
_TOLD_LINES = 5
"""Lines told from the log of a program that died."""


class ProgramEndedError(MusterError):
    """A program of the local fleet ended by itself; names it, with the last lines that it said."""

    def __init__(self, name: str, code: int, last_lines: Sequence[str], log: Path) -> None:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        said = "".join(f"\n  {line}" for line in last_lines)
        super().__init__(f"the {name} {how}; its log is {log}{':' if said else ''}{said}")
        self.name = name
        self.code = code


@asynccontextmanager
async def running(name: str, arguments: Sequence[str], log: Path, claim: Claim) -> AsyncIterator[None]:
    """The program runs within the block; its own end is raised there. It ends when this program does, at the latest."""
    begin = _length(log)
    process = await started(command_of(name, *arguments), log, claim)
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_raise_when_ended(name, process, log, begin), name=f"watch the {name}")
            yield
            watching.cancel()
    finally:
        await stop(name, process)


async def started(command: Sequence[str], log: Path, claim: Claim) -> asyncio.subprocess.Process:
    """A program of the fleet, noted in its claim; what it says goes to its log."""
    with log.open("ab") as output:
        # A group of its own, so that Ctrl-C in the terminal reaches only us and the order of stopping is ours.
        process = await asyncio.create_subprocess_exec(
            *lean_command_of("muster.cli.local.child", str(os.getpid()), *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
        )
    claim.started(process.pid)
    return process


async def stop(name: str, process: asyncio.subprocess.Process) -> None:
    """Have a program end in order, and kill it where it does not; nothing to do where it has ended."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_PATIENCE):
            await process.wait()
    except TimeoutError:
        say(f"the {name} did not stop within {STOP_PATIENCE:.0f} s and is killed", err=True)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def taken(ready_file: Path) -> str | None:
    """What a program that serves has written there, and the file is gone; None until then."""
    try:
        address = ready_file.read_text().strip()
    except FileNotFoundError:
        return None
    ready_file.unlink()
    return address


async def _raise_when_ended(name: str, process: asyncio.subprocess.Process, log: Path, begin: int) -> None:
    code = await process.wait()
    raise ProgramEndedError(name, code, _last_lines(log, begin), log)


def _length(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _last_lines(log: Path, begin: int) -> Sequence[str]:
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode(errors="replace").splitlines()
    return [line for line in lines if line.strip()][-_TOLD_LINES:]
