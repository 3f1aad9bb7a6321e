"""Executions to which somebody attaches: a sandbox of any runtime, with the doors that an agent has for it."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.attach.companion import Companion
from agent.core.door.packets import CommandWanted, GangExit, GangOutput
from agent.loop.doors import ExecutionDoors
from agent.loop.live_execution import LiveExecution
from agent.loop.workbench import OngoingWork
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import RuntimeKind
from tests.contract.lone_loop import NoGangCommands
from tests.contract.runtimes import Trial, running

RIGHTS = ("Umask", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
"""What the kernel tells of what a process may do."""

_OF_THE_C_LIBRARY = 0b11 << 31
"""Signals that have no names: whoever started the tests may have ignored them for all that is started here."""


@dataclass
class Attachable:
    """An execution that runs, as those see it who attach."""

    trial: Trial
    doors: ExecutionDoors
    live: LiveExecution

    @property
    def execution(self) -> ExecutionId:
        return self.trial.sandbox.execution

    async def companion(self) -> Companion:
        return await self.doors.companion(self.execution)

    async def printed(self, *words: str) -> tuple[bytes, int]:
        """What a command prints, and its exit code."""
        command = await (await self.companion()).run(CommandWanted(number=0, words=words))
        output = b""
        try:
            while not isinstance(piece := await command.read(), GangExit):
                output += piece.data if isinstance(piece, GangOutput) else b""
            return output, piece.code
        finally:
            command.close()

    def companions(self) -> list[int]:
        """Processes that are companions of it, as the machine numbers them."""
        return [pid for pid in running(self.execution) if b"stay" in words_of(pid)]


@asynccontextmanager
async def attachable(trial: Trial) -> AsyncIterator[Attachable]:
    """An execution that was started, with the doors that an agent has which has just begun."""
    execution = trial.sandbox.execution
    live = LiveExecution(RuntimeKind.PROCESS, trial.directory, trial.spool, trial.sandbox, started=True)
    async with asyncio.TaskGroup() as tasks:
        work = OngoingWork(tasks)
        doors = ExecutionDoors(NoGangCommands(), work, {execution: live})
        await doors.open_again(live)
        try:
            yield Attachable(trial, doors, live)
        finally:
            work.end()
            work.stop_watching(execution)


def words_of(pid: int) -> list[bytes]:
    """The words that a process was started with; none where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


def pid_of(execution: ExecutionId, told: bytes) -> int:
    """The process of an execution that says that this is its number, as the machine numbers it."""
    [found] = [pid for pid in running(execution) if _status(pid)["NSpid"][-1].encode() == told]
    return found


def surroundings(pid: int) -> Mapping[str, object]:
    """All in which two processes of one execution could differ."""
    place = Path(f"/proc/{pid}")
    status = _status(pid)
    return {
        **{name: status[name] for name in RIGHTS if name in status},
        "ignored": int(status["SigIgn"][0], 16) & ~_OF_THE_C_LIBRARY,
        "limits": (place / "limits").read_text(),
        "cgroup": (place / "cgroup").read_text(),
        "namespaces": {each.name: str(each.readlink()) for each in (place / "ns").iterdir()},
        "environment": environment(pid),
        "directory": str((place / "cwd").readlink()),
        "memory": (place / "oom_score_adj").read_text(),
        "priority": os.getpriority(os.PRIO_PROCESS, pid),
    }


def environment(pid: int) -> list[bytes]:
    """The variables that a process was started with."""
    return sorted(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))


def _status(pid: int) -> Mapping[str, list[str]]:
    lines = (line.partition(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: value.split() for name, _, value in lines}
