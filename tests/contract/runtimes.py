"""What the contract suite of runtimes stands on: places where a runtime works, and trials of one execution there."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from agent.core.launching.job_user import NOBODY, JobUser
from agent.executions.layout import ExecutionDirectory
from agent.logs.spool import LogSpool
from agent.runtimes.process.launcher import Launcher
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.process.spares import SpareSupervisors
from agent.runtimes.runtime import Runtime, Sandbox
from agent.secrets.directories import SecretDirectories
from muster.domain.gangs.log import Stream, parse_records
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.ids import ExecutionId, JobId, execution_id
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import Network, Role

MARK = "MUSTER_EXECUTION_ID"
"""The variable by which the processes of an execution are found, in containers too: they run on the same kernel."""

GRACE = timedelta(seconds=20)
"""Longer than any program here needs to end, so that only those that refuse to are killed."""


class Place(Protocol):
    """Where one kind of runtime works in a test."""

    @property
    def image(self) -> str | None:
        """An image with a POSIX shell and busybox's or GNU's tools; None for plain processes."""
        ...

    added_env: frozenset[str]
    """Variables that user code sees though nobody ordered them."""

    def runtime(self) -> AbstractAsyncContextManager[Runtime]:
        """A runtime, closed at the end."""
        ...

    def config_directory(self, directory: ExecutionDirectory) -> str:
        """Where user code finds the roster files."""
        ...

    def status_directory(self, directory: ExecutionDirectory) -> str:
        """Where user code tells its agent how far it is."""
        ...

    async def left(self, execution: ExecutionId) -> Sequence[str]:
        """What is left of an execution besides processes: containers, volumes, networks."""
        ...


class ProcessPlace:
    """Plain processes."""

    image: str | None = None
    added_env = frozenset({"PATH", "HOME", "LANG", "TZ"})
    job_user: JobUser | None = None
    directories: SecretDirectories | None = None

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @asynccontextmanager
    async def runtime(self) -> AsyncIterator[Runtime]:
        launcher = Launcher(other_users=self.job_user is not None)
        runtime = ProcessRuntime(
            spares=SpareSupervisors(launcher, wanted=0), secrets=self.directories, job_user=self.job_user
        )
        try:
            yield runtime
        finally:
            await runtime.close()

    def config_directory(self, directory: ExecutionDirectory) -> str:
        return str(directory.config)

    def status_directory(self, directory: ExecutionDirectory) -> str:
        return str(directory.status)

    async def left(self, execution: ExecutionId) -> Sequence[str]:
        directories = self._directory.glob(f"**/{execution}")
        return [
            str(path)
            for directory in directories
            for path in directory.glob("*")
            if path.name in {"bell", "process.json"}
        ]


class ProcessPlaceOfOthers(ProcessPlace):
    """Plain processes of another user than the agent's."""

    added_env = frozenset({"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ"})
    job_user = NOBODY


@dataclass
class Trial:
    """One execution on its way through a runtime."""

    sandbox: Sandbox
    spool: LogSpool
    directory: ExecutionDirectory
    launch: Launch

    async def arm(self) -> None:
        await self.sandbox.arm(self.launch)

    async def release(self) -> None:
        """Arm and start."""
        await self.arm()
        await self.sandbox.start()

    async def end(self) -> Exit:
        """How it ended by itself, with all of its output in the spool."""
        result = await self.sandbox.exited()
        await self.sandbox.drained()
        return result

    async def run(self) -> Exit:
        await self.release()
        return await self.end()

    async def says(self, text: bytes, stream: Stream = Stream.STDOUT) -> None:
        """Wait until user code has printed a line."""
        while text not in self.printed(stream):
            self.spool.grew.clear()
            await self.spool.grew.wait()

    def printed(self, stream: Stream = Stream.STDOUT) -> list[bytes]:
        """The lines of one stream, long ones put together again."""
        lines: list[bytes] = []
        pieces = b""
        for record in parse_records(self.spool.read(0, self.spool.size)):
            if record.stream is not stream or record.marker:
                continue
            pieces += record.text
            if not record.partial:
                lines.append(pieces)
                pieces = b""
        return [*lines, pieces] if pieces else lines


def directory_for(directory: Path, execution: ExecutionId) -> ExecutionDirectory:
    """An execution's directory, as the agent makes it for any dialect."""
    own = ExecutionDirectory(directory / "executions", execution)
    for path in (own.config, own.outputs, own.status, own.work, own.inputs):
        path.mkdir(parents=True)
    return own


def assignment_for(role: Role, network: Network = Network.HOST) -> Assignment:
    """The only execution of a job that nobody else on this machine has."""
    job = JobId(f"trial-{uuid.uuid4().hex[:8]}")
    return Assignment(
        execution=execution_id(job, 1, 0),
        job=job,
        job_name="trial",
        attempt=1,
        rank=0,
        world_size=1,
        local_rank=0,
        local_world_size=1,
        node_rank=0,
        node_count=1,
        role=role,
        network=network,
    )


def launch_for(assignment: Assignment, config_files: Mapping[str, bytes] | None = None) -> Launch:
    """What the agent would write for it."""
    env = {**assignment.role.env, MARK: assignment.execution}
    return Launch(env=env, config_files=config_files or {"distributed.json": b"{}\n"})


def running(execution: ExecutionId) -> list[int]:
    """Pids of all processes that were started with the execution's environment and have not ended."""
    wanted = f"{MARK}={execution}".encode()
    found: list[int] = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            if wanted in (directory / "environ").read_bytes().split(b"\0"):
                found.append(int(directory.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def shell(script: str) -> tuple[str, ...]:
    """The command that runs a script."""
    return ("sh", "-c", script)


@asynccontextmanager
async def trial(
    place: Place, directory: Path, role: Role, config_files: Mapping[str, bytes] | None = None
) -> AsyncIterator[Trial]:
    """A prepared execution; at the end it is removed, and nothing of it may be left."""
    async with place.runtime() as runtime:
        assignment = assignment_for(replace(role, image=place.image))
        own = directory_for(directory, assignment.execution)
        with closing(LogSpool(own.log)) as spool:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            try:
                yield Trial(sandbox, spool, own, launch_for(assignment, config_files))
            finally:
                await sandbox.remove()
        assert running(assignment.execution) == []
        assert await place.left(assignment.execution) == []


def ignored(progress: str) -> None:
    """Drop the progress, for tests that do not care how preparing goes on."""
    del progress
