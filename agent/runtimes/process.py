"""Runs executions as plain processes of the agent's user: the runtime for nodes and jobs without containers."""

import asyncio
import errno
import json
import logging
import os
import platform
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from agent.room_files import write_config, write_inline
from agent.runtimes.program import Order, Program
from agent.runtimes.runtime import Progress, Room, Sandbox
from agent.runtimes.session import Session
from agent.spool import LogSpool
from muster.domain.failure import ExecutionError, Exit, FailureKind
from muster.domain.ids import ExecutionId
from muster.domain.job import Network, RuntimeKind
from muster.domain.node import RuntimeOffer
from muster.domain.plan import Assignment, Launch
from muster.domain.roster import PortLease

log = logging.getLogger(__name__)

PASSED_ON = ("PATH", "HOME", "LANG", "TZ")
"""What programs see of the agent's own environment."""

DRAIN_LIMIT = 2.0
"""Seconds after the end of user code for which output of what it left behind is still taken."""

KILL_LIMIT = 30.0
"""Seconds; a process that survives SIGKILL for so long hangs in the kernel and will not go by itself."""

RECORD = "process.json"
"""File in the room that tells which session is the execution's, for an agent that starts after a crash."""


class ProcessRuntime:
    """Makes sandboxes that are sessions of plain processes."""

    kind = RuntimeKind.PROCESS

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        passed_on = {name: environment[name] for name in PASSED_ON if name in environment}
        self._environment = {"PATH": os.defpath, **passed_on}

    async def offer(self) -> RuntimeOffer:
        """It works wherever the agent does, on Linux 5.3 or newer."""
        version = f"Python {platform.python_version()} on {platform.system()} {platform.release()}"
        return RuntimeOffer(kind=self.kind, version=version, problem=_problem())

    async def prepare(
        self, assignment: Assignment, room: Room, spool: LogSpool, ports: Sequence[PortLease], progress: Progress
    ) -> "ProcessSandbox":
        """A sandbox in which nothing is written yet; refuses what only containers can do."""
        del ports, progress  # nothing is published, nothing takes long
        _refuse_container_options(assignment)
        return ProcessSandbox(assignment, room, spool, self._environment)

    async def recover(self, rooms: Path) -> Sequence[tuple[Sandbox, LogSpool, bool]]:
        """Nothing: processes do not outlive their agent; those that a crash left over are killed."""
        for path, session in await asyncio.to_thread(_recorded, rooms):
            survivors = await session.kill(KILL_LIMIT) if session is not None and session.leader_alive else ()
            if survivors:
                log.warning("left over processes survive SIGKILL", extra={"pids": survivors})
            await asyncio.to_thread(path.unlink)
        return []

    async def close(self) -> None:
        """There is nothing to let go of."""


class ProcessSandbox:
    """One execution as a session of processes."""

    def __init__(self, assignment: Assignment, room: Room, spool: LogSpool, environment: Mapping[str, str]) -> None:
        self._role = assignment.role
        self._room = room
        self._spool = spool
        self._environment = environment
        self._execution = assignment.execution
        self._workdir = room.work / (assignment.role.workdir or "")
        self._order: Order | None = None
        self._program: Program | None = None

    @property
    def execution(self) -> ExecutionId:
        """Whose sandbox it is."""
        return self._execution

    async def arm(self, launch: Launch) -> None:
        """Write the files and find the program; what is missing is missed here and not at the start."""
        self._order = await asyncio.to_thread(self._arm, launch)

    async def start(self) -> None:
        """Start user code."""
        if self._program is not None:
            return
        assert self._order is not None, "start comes after arm"
        try:
            self._program = Program(self._order, self._spool)
        except (OSError, ValueError) as problem:
            raise _start_failure(self._order.command[0], problem) from problem
        try:
            (self._room.path / RECORD).write_text(json.dumps(asdict(self._program.session)), encoding="ascii")
        except OSError as problem:
            await self._kill(self._program)
            raise _write_failure(self._room, problem) from problem

    async def exited(self) -> Exit:
        """Wait until the program has ended; what it left running does not count."""
        code = await asyncio.shield(self._started.ended)
        return Exit(code=code if code >= 0 else 128 - code)

    async def drained(self) -> None:
        """Wait for the rest of the output, but not long for processes that outlive the program."""
        await asyncio.shield(self._started.ended)
        try:
            async with asyncio.timeout_at(self._started.ended_at + DRAIN_LIMIT):
                await self._started.silent.wait()
        except TimeoutError:
            self._spool.mark("output after the end is not kept")
            self._started.close()

    async def stop(self, grace: timedelta) -> None:
        """End the whole session, children and their children included."""
        if self._program is None:
            return
        self._program.session.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await self._program.session.ended()
                await asyncio.shield(self._program.ended)
        except TimeoutError:
            await self._kill(self._program)

    async def remove(self) -> None:
        """Kill the whole session; the room is left to its owner."""
        if self._program is None:
            return
        await self._kill(self._program)
        self._program.close()
        (self._room.path / RECORD).unlink(missing_ok=True)

    @property
    def _started(self) -> Program:
        assert self._program is not None, "this comes after start"
        return self._program

    async def _kill(self, program: Program) -> None:
        survivors = await program.session.kill(KILL_LIMIT)
        if survivors:
            message = f"processes {survivors} hang in the kernel and survive SIGKILL; look at the node's kernel log"
            raise ExecutionError(FailureKind.RUNTIME, message)
        await asyncio.shield(program.ended)

    def _arm(self, launch: Launch) -> Order:
        try:
            write_config(self._room, launch)
            if not self._workdir.is_dir():
                message = f"the working directory {self._workdir} is not there; make it on the node or leave it out"
                raise ExecutionError(FailureKind.INVALID_OPTION, message)
            write_inline(self._role.files, self._workdir)
        except OSError as problem:
            raise _write_failure(self._room, problem) from problem
        env = {**self._environment, **launch.env}
        command = (*(self._role.entrypoint or ()), *self._role.command)
        path = _find(command, env["PATH"], self._workdir)
        return Order(command=command, path=path, env=env, workdir=self._workdir)


def _problem() -> str | None:
    """Why processes cannot be run here."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return "needs Linux 5.3 or newer"
    return None


def _refuse_container_options(assignment: Assignment) -> None:
    role = assignment.role
    options = {
        "user": role.user,
        "mounts": role.mounts,
        "ulimits": role.ulimits,
        "network: bridge": assignment.network is Network.BRIDGE,
    }
    given = [name for name, value in options.items() if value]
    if given:
        message = f"{', '.join(given)} is only for containers; give the role an image or leave it out"
        raise ExecutionError(FailureKind.INVALID_OPTION, message)
    if not role.entrypoint and not role.command:
        raise ExecutionError(FailureKind.INVALID_OPTION, "there is no command; a role without image needs one")


def _find(command: Sequence[str], search: str, workdir: Path) -> str:
    """Path of the program of a command, as a shell in the working directory would find it."""
    name = command[0]
    if "/" in name:
        path = str(workdir / name)
        reason = f"{path} is not executable" if Path(path).exists() else f"there is no {path}"
    else:
        path = name
        reason = f"looked in {search}"
    found = shutil.which(path, path=os.pathsep.join(str(workdir / each) for each in search.split(os.pathsep)))
    if found is None:
        raise ExecutionError(FailureKind.COMMAND_NOT_FOUND, f'no program "{name}" on the node: {reason}')
    interpreter = _interpreter(found)
    if interpreter is not None and shutil.which(interpreter) is None:
        reason = f"{found} is a script for {interpreter}, which is not there"
        raise ExecutionError(FailureKind.COMMAND_NOT_FOUND, f'no program "{name}" on the node: {reason}')
    return found


def _interpreter(path: str) -> str | None:
    """The program that a script names in its first line."""
    try:
        with Path(path).open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None  # a program may be executable without being readable
    return os.fsdecode(first[2:].split()[0]) if first.startswith(b"#!") and first[2:].split() else None


def _write_failure(room: Room, problem: OSError) -> ExecutionError:
    if problem.errno in {errno.ENOSPC, errno.EDQUOT}:
        message = f"no space is left on the node for the files of the execution ({room.path})"
        return ExecutionError(FailureKind.DISK_FULL, message)
    return ExecutionError(FailureKind.INVALID_OPTION, f"cannot write {problem.filename}: {problem.strerror}")


def _start_failure(name: str, problem: OSError | ValueError) -> ExecutionError:
    if isinstance(problem, ValueError):
        return ExecutionError(FailureKind.INVALID_OPTION, f'cannot start "{name}": {problem}')
    user = {
        errno.ENOENT: FailureKind.COMMAND_NOT_FOUND,
        errno.EACCES: FailureKind.COMMAND_NOT_FOUND,
        errno.ENOEXEC: FailureKind.COMMAND_NOT_FOUND,
        errno.E2BIG: FailureKind.INVALID_OPTION,
    }
    kind = user.get(problem.errno or 0, FailureKind.RUNTIME)
    return ExecutionError(kind, f'cannot start "{name}": {problem.strerror}')


def _recorded(rooms: Path) -> list[tuple[Path, Session | None]]:
    """What an earlier agent wrote at each start; None where a crash left nothing that can be read."""
    found: list[tuple[Path, Session | None]] = []
    for path in sorted(rooms.glob(f"*/{RECORD}")):
        try:
            found.append((path, Session(**json.loads(path.read_bytes()))))
        except (ValueError, TypeError):
            found.append((path, None))
    return found
