"""Runs executions as plain processes: the runtime for nodes and jobs without containers.

They run as the node's user for jobs where the agent may switch users, else as the agent's own.
"""

import asyncio
import os
import platform
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from agent.code.store import CodeStore
from agent.core.launching.job_user import JobUser
from agent.executions.layout import BELL, CGROUPS, GRACE, PROCESS_RECORD, ExecutionDirectory
from agent.executions.owner import free_user, let_through, open_to, own_user
from agent.executions.volumes.node_volumes import NodeVolumes
from agent.logs.spool import LogSpool
from agent.runtimes.kernel.rights import may_switch
from agent.runtimes.kernel.subtree import Subtree, cpu_seconds_of
from agent.runtimes.process.arming import Preparation
from agent.runtimes.process.attaching.asking import call_for_companion
from agent.runtimes.process.confines import Confined, clear_strangers, confine, limits_of, noted_groups
from agent.runtimes.process.ending import end_supervisor, killed, terminate
from agent.runtimes.process.faults import refuse_container_options, refuse_kept, refuse_survivors, start_failure
from agent.runtimes.process.launcher import Launcher, Supervisor
from agent.runtimes.process.order import paths_of
from agent.runtimes.process.program import FollowedProgram
from agent.runtimes.process.record import UNKNOWN, ProcessRecord, read_record
from agent.runtimes.process.recovery import recorded, runs_all_the_same
from agent.runtimes.process.spares import SpareSupervisors
from agent.runtimes.runtime import Progress, Sandbox
from agent.secrets.directories import SecretDirectories
from agent.telemetry.cgroups import CgroupCounts
from agent.telemetry.processes import counts_of
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.fleet.secret import Handover
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.stopping.preemption import PreemptSignal

PASSED_ON = ("PATH", "HOME", "LANG", "TZ")
"""What programs see of the agent's own environment."""


class ProcessRuntime:
    """Makes sandboxes that are trees of plain processes, which go on without the agent; the next one adopts them."""

    kind = RuntimeKind.PROCESS

    def __init__(  # noqa: PLR0913 - each is a part of the agent of its own, and nothing else needs several of them
        self,
        environment: Mapping[str, str] = os.environ,
        spares: SpareSupervisors | None = None,
        secrets: SecretDirectories | None = None,
        job_user: JobUser | None = None,
        users: Sequence[int] = (),
        code: CodeStore | None = None,
        *,
        volumes: NodeVolumes | None = None,
    ) -> None:
        passed_on = {name: environment[name] for name in PASSED_ON if name in environment}
        self._environment = {"PATH": os.defpath, **passed_on}
        self._user = job_user if may_switch() else None
        self._users = users
        """Numbers of which each execution has one for itself; none: all run as the same user."""
        self._choosing = asyncio.Lock()
        self._volumes = volumes or NodeVolumes()
        self._spares = spares or SpareSupervisors(Launcher(other_users=self._user is not None))
        self._cgroups = self._spares.cgroups
        self._secrets = secrets or SecretDirectories(None)
        self._code = code or CodeStore(Path(os.devnull))
        self._sandboxes: weakref.WeakSet[ProcessSandbox] = weakref.WeakSet()

    async def offer(self) -> RuntimeOffer:
        """What this runtime is; it works wherever the agent does, on Linux 5.3 or newer."""
        version = (
            f"Python {platform.python_version()} on {platform.system()} {platform.release()}, {self._cgroups.says}"
        )
        return RuntimeOffer(kind=self.kind, version=version, problem=_problem())

    async def prepare(
        self,
        assignment: Assignment,
        directory: ExecutionDirectory,
        spool: LogSpool,
        ports: Sequence[PortLease],
        progress: Progress,
    ) -> "ProcessSandbox":
        """A sandbox in which nothing is written yet; refuses what only containers can do."""
        del ports, progress  # nothing is published, nothing takes long
        refuse_container_options(assignment)
        user = await self._chosen(directory)
        own = await self._own(directory)
        if volumes := assignment.role.volumes:
            refuse_kept(volumes, own)
            make = partial(self._volumes.make, directory, assignment.project, volumes, user, walked=True)
            await asyncio.to_thread(make)
        supervisor = self._spares.take()  # made while others still check in
        groups = confine(self._cgroups, assignment, directory, spool, supervisor)
        preparation = Preparation(
            role=assignment.role,
            environment=self._environment,
            spares=self._spares,
            secrets=self._secrets,
            code=self._code,
            user=user,
            own_user=own is not None,
            groups=groups,
        )
        confined = Confined(own_user=own, cgroups=self._cgroups, groups=paths_of(groups))
        return self._remember(ProcessSandbox(assignment.execution, directory, spool, preparation, supervisor, confined))

    async def recover(self, executions: Path) -> Sequence[tuple[Sandbox, LogSpool, bool]]:
        """Every program that was started, whether it runs, has ended or was lost; all others never ran.

        What runs although its record is damaged is found all the same, and ended as soon as somebody waits for it.
        """
        self._spares.start()
        found: list[tuple[Sandbox, LogSpool, bool]] = []
        known: set[str] = set()
        for directory, noted in await asyncio.to_thread(recorded, executions):
            if self._user is not None:  # whoever started the agent may have closed its directory again
                await asyncio.to_thread(let_through, directory)
            spool = LogSpool(directory.log)
            own = await self._own(directory)
            record = replace(noted, groups=noted_groups(directory)) if noted.damaged else noted
            if record.damaged and not await asyncio.to_thread(runs_all_the_same, directory, record, own):
                spool.close()
                continue
            known.update(record.groups)
            confined = Confined(own_user=own, cgroups=self._cgroups, groups=record.groups)
            sandbox = self._remember(
                ProcessSandbox(ExecutionId(directory.path.name), directory, spool, confined=confined)
            )
            sandbox.adopt(record)
            found.append((sandbox, spool, True))
        await asyncio.to_thread(clear_strangers, self._cgroups, known)
        return found

    async def close(self) -> None:
        """Follow the programs no more; they go on. What was armed and not started is given up."""
        for sandbox in tuple(self._sandboxes):
            await sandbox.let_go()
        await self._spares.close()

    async def _chosen(self, directory: ExecutionDirectory) -> JobUser | None:
        """The user that the program will run as, who can get to the directory from here on; None: the agent's."""
        if self._user is None:
            return None
        async with self._choosing:  # nobody else shall find the same one free
            user = await asyncio.to_thread(free_user, directory, self._user, self._users)
            await asyncio.to_thread(open_to, directory, user)
        return user

    async def _own(self, directory: ExecutionDirectory) -> int | None:
        """The user that nothing but this execution runs as; None: there is none."""
        return await asyncio.to_thread(own_user, directory, self._users) if self._users else None

    def _remember(self, sandbox: "ProcessSandbox") -> "ProcessSandbox":
        self._sandboxes.add(sandbox)
        return sandbox


class ProcessSandbox:
    """One execution as a tree of processes."""

    def __init__(
        self,
        execution: ExecutionId,
        directory: ExecutionDirectory,
        spool: LogSpool,
        preparation: Preparation | None = None,
        supervisor: Supervisor | None = None,
        confined: Confined | None = None,
    ) -> None:
        self._execution = execution
        self._confined = confined or Confined()
        self._directory = directory
        self._spool = spool
        self._preparation = preparation
        self._supervisor = supervisor
        self._name = ""
        """The program's name, as the user wrote it."""
        self._secretive = False
        """Whether its supervisor has been told secrets."""
        self._program: FollowedProgram | None = None

    @property
    def execution(self) -> ExecutionId:
        """The execution to which this sandbox belongs."""
        return self._execution

    @property
    def ended(self) -> bool:
        """Whether it has told how; what nobody knows the end of may run."""
        return self._program is not None and isinstance(self._program.outcome, int)

    @property
    def vacant(self) -> bool:
        """Whether its supervisor has told that nothing is left of all that it started."""
        return self._program is not None and self._program.alone

    def adopt(self, record: ProcessRecord) -> None:
        """Take over a program that an earlier agent started."""
        self._program = FollowedProgram(self._directory.path, self._spool, record)

    async def arm(self, launch: Launch) -> None:
        """Write the files, find the program, get its supervisor ready; what is missing is missed here."""
        if self._preparation is None or self._supervisor is None:
            raise ExecutionError(FailureKind.AGENT_RESTARTED, "the agent was restarted before user code ran")
        order = await asyncio.to_thread(self._preparation.order, self._directory, launch, self._spool.limit)
        self._name = order.command[0]
        self._secretive = launch.secrets != Handover()
        try:
            try:
                await self._supervisor.arm(order)
            except ConnectionError:  # it was killed, or its launcher was before it could be made
                self._supervisor.close()
                self._supervisor = self._preparation.spares.make()
                await self._supervisor.arm(order)
        except OSError as problem:
            raise start_failure(self._name, problem) from problem

    async def start(self) -> None:
        """Start user code."""
        if self._program is not None:
            return
        assert self._supervisor is not None, "start comes after arm"
        try:
            record = await self._supervisor.release()
        except (ConnectionError, ExecutionError) as problem:
            await _abandon(self._supervisor, self._directory, self._execution)
            self._supervisor = None
            raise ExecutionError(FailureKind.RUNTIME, f'cannot start "{self._name}": {problem}') from problem
        except OSError as problem:
            self._supervisor.close()
            self._supervisor = None
            raise start_failure(self._name, problem) from problem
        self.adopt(record)
        if self._preparation is not None:
            self._confined.cgroups.weigh(self._confined.groups, self._preparation.role.resources.cpu_millis)

    async def attach(self, ticket: str) -> None:
        """Have its supervisor start a companion, which is then one of the processes that end with the program."""
        if self._program is None:
            raise ExecutionError(FailureKind.RUNTIME, "user code does not run yet")
        await call_for_companion(self._directory, self._program, ticket)

    async def exited(self) -> Exit:
        """Wait until the program has ended; what it left running does not count.

        Raises ExecutionError where nobody knows how it ended; then nothing of it is left running.
        """
        code = await asyncio.shield(self._started.ended)
        if isinstance(code, ExecutionError):
            await _kill(self._started)
            raise code
        return Exit(code=code if code >= 0 else 128 - code, out_of_memory=self._started.out_of_memory)

    async def drained(self) -> None:
        """Wait for the rest of the output, but not long for processes that outlive the program."""
        await self._started.complete.wait()

    async def vacate(self) -> None:
        """Kill what the program left running, once no more of its output is taken."""
        await self._started.complete.wait()
        if not self.vacant:
            await _kill_all(self._started, self._confined.own_user)

    async def cpu_seconds(self) -> float | None:
        """What the kernel counts of its processes, and of those of their children that have ended."""
        return None if self._program is None else await asyncio.to_thread(cpu_seconds_of, self._program.subtree)

    async def counts(self) -> CgroupCounts:
        """What the kernel counts of its processes."""
        return CgroupCounts() if self._program is None else await asyncio.to_thread(_counts, self._program.subtree)

    async def own(self, pids: Collection[int]) -> frozenset[int]:
        """Tell which of these processes it has started, whatever sessions they made."""
        if self._program is None:
            return frozenset()
        members = await asyncio.to_thread(self._program.subtree.members)
        return frozenset(each.pid for each in members) & frozenset(pids)

    async def stop(self, grace: timedelta, signal: PreemptSignal | None = PreemptSignal.TERM) -> None:
        """End all that it started, whatever sessions that made."""
        await self._catch_up()
        if self._program is None or self._program.alone:
            return
        await asyncio.to_thread(terminate, self._directory, self._program.subtree, grace, signal)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace.total_seconds()):
                await asyncio.shield(self._program.ended)
        await _kill(self._program)

    async def remove(self) -> None:
        """Kill all that it started, then its supervisor; the directory is left to its owner."""
        await self._catch_up()
        if self._program is not None:
            await _kill_all(self._program, self._confined.own_user)
            await end_supervisor(self._program)
            (self._directory.path / PROCESS_RECORD).unlink(missing_ok=True)
        for name in (BELL, GRACE, CGROUPS):
            (self._directory.path / name).unlink(missing_ok=True)
        if self._passed_on():  # now that nothing names them any more, they may be somebody else's
            self._confined = replace(self._confined, groups=())
        else:
            await asyncio.to_thread(self._confined.cgroups.remove, self._confined.groups)

    async def let_go(self) -> None:
        """Leave a program that runs to the next agent."""
        if self._supervisor is not None:
            self._supervisor.close()
        if self._program is not None:
            self._program.close()

    @property
    def _started(self) -> FollowedProgram:
        assert self._program is not None, "this comes after start"
        return self._program

    async def _catch_up(self) -> None:
        """A start that was interrupted goes on: only then is it known what there is to end."""
        if self._program is None and self._supervisor is not None and self._supervisor.released:
            with suppress(ExecutionError):
                await self.start()

    def _passed_on(self) -> bool:
        """Have the supervisor do something else, or let go of it; whether the cgroups are in use again.

        It goes if it has known secrets, or has children left.
        """
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return False
        if self._preparation is None or not self.vacant or self._secretive:
            supervisor.close()
            return False
        return self._preparation.spares.take_back(supervisor, limits_of(self._preparation.role))


async def _kill_all(program: FollowedProgram, own_user: int | None) -> None:
    """All that it started, and all that its user runs whose processes are told from others by that."""
    await _kill(program)
    if own_user is not None:  # nothing is to be there for the next of this user
        refuse_survivors(await killed(Subtree(supervisor=UNKNOWN, user=own_user)))


async def _kill(program: FollowedProgram) -> None:
    if not program.alone:
        refuse_survivors(await killed(program.subtree, program.ended))
    await asyncio.shield(program.ended)


async def _abandon(supervisor: Supervisor, directory: ExecutionDirectory, execution: ExecutionId) -> None:
    """End a supervisor that is dead or hangs; whatever it started must not run without it."""
    supervisor.kill()
    record = await asyncio.to_thread(read_record, directory.path)
    if record is not None:
        refuse_survivors(await killed(record.subtree(execution)))


def _problem() -> str | None:
    """Why processes cannot be run here."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return "needs Linux 5.3 or newer"
    return None


def _counts(subtree: Subtree) -> CgroupCounts:
    return counts_of([each.pid for each in subtree.members()], cpu_seconds_of(subtree))
