"""Agents to be killed, what their successors adopt, and programs in a runtime that others share."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from agent.executions.layout import PROCESS_RECORD, ExecutionDirectory
from agent.logs.spool import LogSpool
from agent.runtimes.kernel.pids import Process
from agent.runtimes.process.record import read_record
from agent.runtimes.process.runtime import ProcessRuntime
from muster.domain.jobs.job import Role
from tests.contract.runtimes import (
    ProcessPlace,
    Trial,
    assignment_for,
    directory_for,
    ignored,
    launch_for,
    running,
    shell,
)
from tests.house.generate_stubs import ROOT


class MortalAgent:
    """An agent in a process of its own."""

    def __init__(self, directory: Path, scripts: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.mortal_agent", directory, *scripts],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    async def line(self) -> bytes:
        assert self._process.stdout is not None
        return await asyncio.to_thread(self._process.stdout.readline)

    async def says(self, text: bytes) -> None:
        assert await self.line() == text + b"\n"

    async def sees(self, size: int) -> None:
        """Wait until the logs together have so many bytes."""
        while int(await self.line()) < size:
            pass

    async def start(self) -> None:
        assert self._process.stdin is not None
        await self.says(b"armed")
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        await self.says(b"started")

    def kill(self) -> None:
        with self._process:
            self._process.kill()


@asynccontextmanager
async def mortal_agent(directory: Path, *scripts: str) -> AsyncIterator[MortalAgent]:
    """One that holds programs, until it is killed at the end."""
    agent = MortalAgent(directory, scripts)
    try:
        yield agent
    finally:
        await asyncio.to_thread(agent.kill)


@dataclass
class Adopted(Trial):
    """An execution that an agent after the one that was killed has adopted."""

    started: bool


@asynccontextmanager
async def adopted(directory: Path) -> AsyncIterator[list[Adopted]]:
    """All executions of a killed agent, in the order in which it started them; at the end nothing is left of them."""
    place = ProcessPlace(directory)
    async with place.runtime() as runtime:
        found = [
            Adopted(
                sandbox,
                spool,
                ExecutionDirectory(directory / "executions", sandbox.execution),
                launch_for(assignment_for(Role())),
                yes,
            )
            for sandbox, spool, yes in await runtime.recover(directory / "executions")
        ]
        try:
            yield found
        finally:
            supervisors = [
                record.supervisor for each in found if (record := read_record(each.directory.path)) is not None
            ]
            for each in found:
                await each.sandbox.remove()
                each.spool.close()
    for each in found:
        assert running(each.sandbox.execution) == []
        assert await place.left(each.sandbox.execution) == []
    for supervisor in supervisors:
        await over(supervisor)


async def over(it: Process) -> None:
    """Wait for the end of a process that is not ours."""
    try:
        descriptor = os.pidfd_open(it.pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, ended.set)
    if it.runs:
        await ended.wait()
    asyncio.get_running_loop().remove_reader(descriptor)
    os.close(descriptor)


def supervisors(directory: Path) -> list[Process]:
    records = (read_record(path.parent) for path in (directory / "executions").glob(f"*/{PROCESS_RECORD}"))
    return [record.supervisor for record in records if record is not None]


@asynccontextmanager
async def prepared(runtime: ProcessRuntime, directory: Path, script: str, limit: int = 1 << 30) -> AsyncIterator[Trial]:
    """An execution in a runtime that others share."""
    assignment = assignment_for(Role(command=shell(script)))
    own = directory_for(directory, assignment.execution)
    with closing(LogSpool(own.log, limit)) as spool:
        sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
        yield Trial(sandbox, spool, own, launch_for(assignment))
        await sandbox.remove()


@asynccontextmanager
async def launched(runtime: ProcessRuntime, directory: Path, script: str, limit: int = 1 << 30) -> AsyncIterator[Trial]:
    """A program that runs."""
    async with prepared(runtime, directory, script, limit) as it:
        await it.release()
        yield it
