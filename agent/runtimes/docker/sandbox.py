"""One execution in a container: armed, started, watched, stopped, removed."""

import errno
import io
import math
import tarfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from agent.code.places import files_in, give_code
from agent.code.store import CodeStore
from agent.core.containers.attended import CONTAINER_INSIDE, behind_parent, without_parent
from agent.core.containers.first import behind_first, without_first
from agent.core.containers.secrets import beside_with_variables, is_behind_variables
from agent.core.containers.spec import (
    Body,
    ContainerPart,
    ContainerSite,
    Image,
    arguments,
    candidates,
    hosts_file,
    inline_paths,
    mount_targets,
    search_path,
    user_body,
    workdir,
)
from agent.core.door.names import TICKET_VARIABLE
from agent.core.launching.job_user import JobUser
from agent.core.launching.launch import CONTAINER_RUN
from agent.executions.files import EXECUTABLE, READABLE, write_config
from agent.executions.layout import DOOR, STARTED, ExecutionDirectory
from agent.executions.whole_file import write_whole
from agent.logs.mask import MASK_NOTHING, Mask
from agent.logs.spool import LogSpool
from agent.runtimes.docker.containers import Containers, as_failures
from agent.runtimes.docker.ends import ContainerEnd
from agent.runtimes.docker.engine.connection import EngineError
from agent.runtimes.docker.engine.engine import DockerEngine
from agent.runtimes.docker.files import refuse_lent
from agent.runtimes.docker.output import ContainerOutput
from agent.runtimes.docker.programs import ContainerPrograms, Sought
from agent.runtimes.docker.secrets import ContainerSecrets
from agent.runtimes.docker.side_work import begun
from agent.secrets.directories import VARIABLES, SecretDirectories
from agent.telemetry.cgroups import CgroupCounts
from muster.domain.data.code import CODE_DIRECTORY
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import InlineFile
from muster.domain.jobs.stopping.preemption import PreemptSignal

ATTACH_PATIENCE = 5.0
"""Seconds for which an engine that is being restarted is waited for by those who attach."""


CONTAINER_DOOR = f"{CONTAINER_RUN}/{DOOR}"
"""The door of an execution as its container sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The container that owns the network of an execution on bridge networking."""

    id: str
    address: str
    """The address on the bridge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedContainer:
    """What preparing found out and arming needs."""

    assignment: Assignment
    directory: ExecutionDirectory
    site: ContainerSite
    image: Image
    holder: Holder | None
    architecture: str
    """The architecture of the engine's processor."""
    programs: ContainerPrograms
    code: CodeStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerCompanion:
    """The companion that is started in a container."""

    command: tuple[str, ...]
    ticket: str = field(repr=False)
    """What it shows at the door."""


class DockerSandbox:
    """One execution; Docker remembers all of it but what `prepared` says."""

    def __init__(
        self,
        engine: DockerEngine,
        containers: Containers,
        spool: LogSpool,
        end: ContainerEnd,
        prepared: PreparedContainer | None,
        secrets: SecretDirectories,
    ) -> None:
        self._engine = engine
        self._containers = containers
        self._spool = spool
        self._prepared = prepared
        self._secrets = secrets
        self.mask = MASK_NOTHING
        """What is taken out of its log."""
        self._companion: ContainerCompanion | None = None
        """None where there is no door."""
        self._container = ""
        self._output: ContainerOutput | None = None
        self._end = end
        self._over = False
        self._outcome: Exit | ExecutionError | None = None

    @property
    def execution(self) -> ExecutionId:
        """The execution to which this sandbox belongs."""
        return self._containers.execution

    @property
    def ended(self) -> bool:
        """Whether it had when it was adopted, or has told how since."""
        return self._over or isinstance(self._outcome, Exit)

    @property
    def vacant(self) -> bool:
        """Whether the container has ended: nothing outlives the first process in it."""
        return self._over or self._outcome is not None

    def adopt(self, container: str, *, started: bool, over: bool = False) -> None:
        """Take over a container that was armed, and perhaps started and over, before a restart of the agent."""
        self._container = container
        self._over = over
        if started:
            self._output = ContainerOutput(self._engine, container, self._spool, self.mask)

    async def arm(self, launch: Launch) -> None:
        """Create the container and meanwhile write the files, put the inline files into it and look for the program."""
        prepared = self._prepared
        if prepared is None:
            raise ExecutionError(FailureKind.AGENT_RESTARTED, "the agent was restarted before user code ran")
        if launch.role is not None:
            prepared = replace(prepared, assignment=replace(prepared.assignment, role=launch.role))
        hosts = None if prepared.holder is None else prepared.directory.path / "hosts"
        holder = None if prepared.holder is None else prepared.holder.id
        body = user_body(prepared.assignment, prepared.site, prepared.image, launch, holder=holder, hosts=hosts)
        secrets = ContainerSecrets(execution=self.execution, directories=self._secrets, handover=launch.secrets)
        self.mask = Mask.of(launch.secrets.masked)
        self._companion = _companion(launch)
        with as_failures():
            if self._container:
                await self._engine.containers.remove(self._container)
            if launch.secrets:
                body = await secrets.offered(body, prepared.directory, *_user_code(prepared, launch))
            if prepared.site.first is not None:
                body = behind_first(body, *_user_code(prepared, launch))
            if launch.main_program is not None:
                _refuse_unattended(prepared)
                body = behind_parent(body, launch.main_program, CONTAINER_DOOR)
            writing = begun(partial(_write, prepared, launch, hosts))
            files = await _files_apart(prepared)
            if hosts is not None:
                await writing  # the engine refuses to mount what is not there yet
            self._container = await self._containers.create(ContainerPart.USER, body)
            await writing
            if files:
                await self._put(files, prepared)
            await prepared.programs.check(self._container, _sought(prepared, launch, body))
            if launch.secrets:
                await secrets.provided(self._engine, self._container, prepared.architecture)

    async def _put(self, files: Mapping[str, InlineFile], prepared: PreparedContainer) -> None:
        """Have inline files in the container, by their absolute paths."""
        lent = [mount.target for mount in prepared.assignment.role.mounts]
        await refuse_lent(self._engine.files, self._container, files, lent)
        await self._engine.files.put(self._container, _archive(files, prepared.site.user, int(time.time())))

    async def start(self) -> None:
        """Start user code; from here on its output is copied."""
        if self._output is not None:
            return
        assert self._container, "start comes after arm"
        if self._prepared is not None:
            # As logs are written: at once, for a hop to a thread takes longer than so small a file.
            write_whole(self._prepared.directory.path / STARTED, self._container.encode(), READABLE)
        with as_failures():
            await self._engine.containers.start(self._container)
        self._end.expect_running()
        self._output = ContainerOutput(self._engine, self._container, self._spool, self.mask, begun=True)
        if self._companion is not None:
            await self._accompany(self._companion)

    async def _accompany(self, companion: ContainerCompanion) -> None:
        """Start the companion beside user code; where it cannot run the log says so, and the door refuses commands."""
        try:
            with as_failures():
                env = {TICKET_VARIABLE: companion.ticket}
                await self._engine.containers.run_beside(self._container, companion.command, env)
        except ExecutionError as error:
            if not self.vacant and await self._runs():
                self._spool.mark(f"commands from elsewhere in the gang cannot run here: {error}")

    async def _runs(self) -> bool:
        with as_failures():
            return (await self._engine.containers.state(self._container)).running

    async def attach(self, ticket: str) -> None:
        """Have the engine start a companion in the container, which the kernel ends with the first process there."""
        with as_failures():
            state = await self._engine.containers.state(self._container, ATTACH_PATIENCE)
            if not state.running:
                raise ExecutionError(FailureKind.RUNTIME, "the container does not run")
            command = _companion_command(
                secret_variables=is_behind_variables(without_first(without_parent(state.command)))
            )
            env = {TICKET_VARIABLE: ticket}
            await self._engine.containers.run_beside(self._container, command, env, ATTACH_PATIENCE)

    async def exited(self) -> Exit:
        """How user code ended. Raises ExecutionError where Docker ended it, or lost it, without being asked."""
        if self._outcome is None:
            outcome = await self._end.outcome(self._container)
            self._outcome = self._outcome or outcome
        if isinstance(self._outcome, ExecutionError):
            raise self._outcome
        return self._outcome

    async def drained(self) -> None:
        """Wait for the rest of the output; where some cannot be had the log says so."""
        if self._output is not None:
            await self._output.complete()

    async def vacate(self) -> None:
        """End a container of which the engine does not tell whether it has ended."""
        if not self.vacant:
            await self.stop(timedelta(0))

    async def cpu_seconds(self) -> float | None:
        """What the engine counts of the container's cgroup."""
        with as_failures():
            return await self._engine.containers.cpu_seconds(self._container, ATTACH_PATIENCE)

    async def counts(self) -> CgroupCounts:
        """What the kernel counts of the container's cgroup."""
        with as_failures():
            return await self._containers.counts(self._container)

    async def own(self, pids: Collection[int]) -> frozenset[int]:
        """Tell which of these processes are in the container's cgroup."""
        with as_failures():
            return await self._containers.own(self._container, pids)

    async def stop(self, grace: timedelta, signal: PreemptSignal | None = PreemptSignal.TERM) -> None:
        """The signal to the first process, then SIGKILL to all. In place of SIGTERM it gets the image's stop signal."""
        if self._output is None:
            return
        self._end.expect_stop()
        with as_failures():
            try:
                if signal is PreemptSignal.TERM:
                    await self._engine.containers.stop(self._container, math.ceil(grace.total_seconds()))
                    return
                if signal is not None:
                    await self._engine.containers.signal(self._container, signal)
                await self._engine.containers.kill_after(self._container, grace.total_seconds())
            except EngineError as error:
                if not error.not_found:
                    raise

    async def remove(self) -> None:
        """Remove all containers of the execution; the directory is left to its owner."""
        self._end.expect_removal()
        await self.let_go()
        with as_failures():
            await self._containers.remove()

    async def let_go(self) -> None:
        """Stop copying output; the containers stay as they are."""
        if self._output is not None:
            await self._output.cancel()


def _companion(launch: Launch) -> ContainerCompanion | None:
    """What stays beside user code, with the same variables; None where there is no door."""
    if not launch.ticket:
        return None
    command = _companion_command(secret_variables=bool(launch.secrets.env))
    return ContainerCompanion(command=command, ticket=launch.ticket)


def _companion_command(*, secret_variables: bool) -> tuple[str, ...]:
    """The words of a companion; `secret_variables`: whether user code has variables that are secrets."""
    command = (CONTAINER_INSIDE, "stay", CONTAINER_DOOR)
    return beside_with_variables(VARIABLES, command) if secret_variables else command


def _refuse_unattended(prepared: PreparedContainer) -> None:
    """Raise ExecutionError where the programs that stand before user code cannot run."""
    if prepared.site.first is None:
        message = (
            "stdin and tty are not possible on this node: no programs run from the directory of its agent (noexec), or "
            f"there are none for {prepared.architecture}"
        )
        raise ExecutionError(FailureKind.INVALID_OPTION, message)


def _user_code(prepared: PreparedContainer, launch: Launch) -> tuple[Sequence[str], Sequence[str]]:
    """The arguments of the program, with its name first, and where it may be."""
    role, image = prepared.assignment.role, prepared.image
    called = arguments(role, image)
    return called, candidates(called[0], workdir(role, image), search_path(image, launch))


def _sought(prepared: PreparedContainer, launch: Launch, body: Body) -> Sought:
    """What user code begins with, in a container that was created as `body` says."""
    role, image = prepared.assignment.role, prepared.image
    (name, *_), places = _user_code(prepared, launch)
    mounts = frozenset((*(mount.target for mount in role.mounts), *((CODE_DIRECTORY,) if role.code else ())))
    return Sought(
        name=name,
        places=tuple(places),
        search=search_path(image, launch),
        image=role.image or "",
        image_id=image.id,
        mounts=mounts,
        files=frozenset(inline_paths(role, image)),
        own=frozenset(mount_targets(body)) - mounts,
    )


async def _files_apart(prepared: PreparedContainer) -> Mapping[str, InlineFile]:
    """Have the execution's copy of its code, if any, with the inline files that belong there; gives the others."""
    files = inline_paths(prepared.assignment.role, prepared.image)
    code = prepared.assignment.role.code
    if code is None or not code.writable:
        return files
    await begun(partial(_lay_out_code, prepared, files_in(files, CODE_DIRECTORY)))
    return {path: file for path, file in files.items() if not path.startswith(f"{CODE_DIRECTORY}/")}


def _lay_out_code(prepared: PreparedContainer, files: Mapping[str, InlineFile]) -> None:
    directory = prepared.directory.code
    prepared.code.lay_out(prepared.assignment.execution, directory, files)
    try:
        give_code(directory, prepared.site.user)
    except OSError as problem:
        raise ExecutionError(FailureKind.RUNTIME, f"code: {problem.filename}: {problem.strerror}") from problem


def _write(prepared: PreparedContainer, launch: Launch, hosts: Path | None) -> None:
    try:
        write_config(prepared.directory, launch)
        if hosts is not None and prepared.holder is not None:
            write_whole(hosts, hosts_file(prepared.assignment, launch, prepared.holder.address), READABLE)
    except OSError as problem:
        full = problem.errno in {errno.ENOSPC, errno.EDQUOT}
        kind = FailureKind.DISK_FULL if full else FailureKind.RUNTIME
        raise ExecutionError(kind, f"cannot write {problem.filename}: {problem.strerror}") from problem


def _archive(files: Mapping[str, InlineFile], owner: JobUser | None, written_at: int) -> bytes:
    """The files without the directories above them, whose owner and mode then stay as they are."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, file in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mtime = len(file.content), written_at
            entry.uid, entry.gid = (owner.uid, owner.gid) if owner is not None else (0, 0)
            entry.mode = EXECUTABLE if file.executable else READABLE
            archive.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()
