"""The five actions of an execution: prepare, arm, start, halt, remove; and questions to peers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import assert_never

from agent.attach.programs import bring_companion
from agent.core.actions import AnswerPeer, Arm, AskPeers, Halt, LeavePeers, Prepare, Remove, Start, StoreAgain
from agent.core.beginnings import BEGINNINGS, fields_of
from agent.core.containers.inputs import input_place
from agent.core.door.names import INSIDE
from agent.core.events import Armed, Event, Halted, Prepared, Progressed, Removed, Started
from agent.core.launching.launch import CONTAINER_CONFIG, CONTAINER_OUTPUTS, CONTAINER_RUN, CONTAINER_STATUS, launch
from agent.core.launching.site import LaunchSite
from agent.core.step import AgentState
from agent.executions.directories import may_go
from agent.executions.inputs import link_inputs, note_inputs
from agent.executions.layout import DOOR, ExecutionDirectory
from agent.executions.notices import give_notice
from agent.executions.owner import process_workdir
from agent.executions.record import record_of
from agent.logs.spool import LogSpool
from agent.loop.doors import ExecutionDoors, with_door
from agent.loop.exits import Exits
from agent.loop.failures import failed
from agent.loop.live_execution import LiveExecution
from agent.loop.retry import insist
from agent.loop.saving.outputs import store_again
from agent.loop.workbench import OngoingWork, Workbench, ended
from muster.domain.data.code import CODE_DIRECTORY
from muster.domain.data.job_input import INPUTS_DIRECTORY, INPUTS_FILE
from muster.domain.gangs.plan import LAUNCH_PROGRAMS, Assignment, Launch
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.job import Role, RuntimeKind
from muster.domain.jobs.stopping.notice import StopNotice

log = logging.getLogger(__name__)

TOO_LATE = "its agent had no word from the coordinator for so long that it did not start it"

ActionInTime = Prepare | Arm | Start | Halt | Remove | StoreAgain | AskPeers | LeavePeers | AnswerPeer
"""Actions that take time."""


class Actions:
    """Carries out what the core orders, each execution by itself; what comes of it goes into the inbox."""

    def __init__(
        self, bench: Workbench, state: AgentState, work: OngoingWork, exits: Exits, doors: ExecutionDoors
    ) -> None:
        """Carry nothing out yet; `state` is only read."""
        self._bench = bench
        self._state = state
        self._work = work
        self._exits = exits
        self._doors = doors

    def carry_out(self, action: ActionInTime) -> None:  # noqa: C901 - one line for each kind of action
        """Begin an action."""
        if isinstance(action, Prepare | Arm | Start):
            self._bench.launches.note()
        match action:
            case Prepare():
                self._begin(action.assignment.execution, partial(self._prepare, action.assignment))
            case Arm():
                self._begin(action.assignment.execution, partial(self._arm, action))
            case Start():
                self._begin(action.execution, partial(self._start, action.execution))
            case Halt():
                self._begin(action.execution, partial(self._halt, action, self._work.under_way(action.execution)))
            case Remove():
                halting = self._work.under_way(action.execution)
                self._begin(action.execution, partial(self._remove, action.execution, halting))
            case StoreAgain():
                self._work.watch(action.execution, store_again(self._bench, action))
            case AskPeers():
                self._work.beside(self._ask_peers(action), "ask peers")
            case LeavePeers():
                self._work.beside(self._bench.guard.leave_peers(), "leave peers")
            case AnswerPeer():  # whoever was asked gives it
                pass
            case _:
                assert_never(action)

    def _begin(self, execution: ExecutionId, act: Callable[[], Awaitable[Event]]) -> None:
        local = self._state.ledger.get(execution)
        if local is not None and log.isEnabledFor(logging.INFO):
            log.info(BEGINNINGS[local.phase], extra=fields_of(local, self._bench.guard.site.node))
        self._work.begin(execution, self._reported(execution, act))

    async def _reported(self, execution: ExecutionId, act: Callable[[], Awaitable[Event]]) -> None:
        """Carry out one action; what comes of it is an event, also where something goes wrong."""
        try:
            event = await act()
        except Exception as error:  # noqa: BLE001 - whatever it is, the execution has failed and the agent goes on
            event = await failed(self._bench, execution, error)
        self._bench.inbox.put(event)

    async def _ask_peers(self, action: AskPeers) -> None:
        self._bench.inbox.put(await self._bench.guard.ask(action))

    async def _prepare(self, assignment: Assignment) -> Prepared:
        bench, execution, kind = self._bench, assignment.execution, assignment.role.runtime
        runtime = bench.runtimes.get(kind)
        if runtime is None:
            raise ExecutionError(FailureKind.INVALID_OPTION, f"this node's agent runs no {kind} executions")
        bench.guard.expect(assignment.fence)

        def progress(detail: str) -> None:
            bench.inbox.put(Progressed(execution=execution, detail=detail))

        ports = await bench.held.lease(assignment, progress)
        directory, record = bench.directories.of(execution), record_of(assignment, bench.address, ports)
        if not bench.directories.take_spare(directory, record):
            await asyncio.to_thread(bench.directories.make, directory, record)
        if Dialect.VALOHAI in assignment.dialects:
            await asyncio.to_thread(bench.directories.add_inputs, directory)
        spool = LogSpool(directory.log, bench.log_limit)
        live = bench.live[execution] = LiveExecution(runtime.kind, directory, spool, record=record)
        bench.logs.follow(execution, spool)
        await self._doors.open(live, assignment)
        await bench.secrets.fetch(assignment, progress)
        await bench.code.fetch(assignment, progress)
        await asyncio.to_thread(bench.code.share, assignment, directory.code)
        await self._have_inputs(assignment, directory, progress)
        await bench.checkpoints.restore(assignment, directory, progress)
        live.sandbox = await runtime.prepare(assignment, directory, live.spool, ports, progress)
        return Prepared(execution=execution, address=bench.address, ports=ports)

    async def _have_inputs(
        self, assignment: Assignment, directory: ExecutionDirectory, progress: Callable[[str], None]
    ) -> None:
        """Have the inputs on this node, and the links by which they are found."""
        if assignment.role.inputs:
            await self._bench.inputs.fetch(assignment, progress)
            contained = assignment.role.runtime is RuntimeKind.DOCKER
            held = self._bench.inputs.held(assignment.execution)
            places = {name: each.directory for name, each in held.items()}
            await asyncio.to_thread(note_inputs if contained else link_inputs, directory, places)

    async def _arm(self, action: Arm) -> Armed:
        live = self._bench.live[action.assignment.execution]
        assert live.sandbox is not None
        if action.assignment.interactive is not None or action.assignment.main_program is not None:
            await asyncio.to_thread(bring_companion, live.directory)  # its main program waits, or gets a parent
        doored = live.door is not None and live.door.has_gang_commands
        site = replace(
            self._site(action.assignment.role, live.directory, doored=doored),
            volumes=self._volumes(action.assignment, live.directory),
            commit=self._bench.code.commit(action.assignment.execution),
        )
        launched = with_door(launch(action.assignment, action.roster, site), live.door, action.assignment.main_program)
        launched = self._with_inputs(action.assignment, live.directory, launched)
        await live.sandbox.arm(self._bench.secrets.added(action.assignment, launched))
        return Armed(execution=action.assignment.execution)

    def _site(self, role: Role, directory: ExecutionDirectory, *, doored: bool) -> LaunchSite:
        """The directories as user code of this role sees them."""
        if role.runtime is RuntimeKind.DOCKER:
            return LaunchSite(
                programs=f"{CONTAINER_CONFIG}/{LAUNCH_PROGRAMS}" if doored else "",
                inside=f"{CONTAINER_CONFIG}/{LAUNCH_PROGRAMS}/{INSIDE}",
                door=f"{CONTAINER_RUN}/{DOOR}" if doored else "",
                config=CONTAINER_CONFIG,
                outputs=CONTAINER_OUTPUTS,
                status=CONTAINER_STATUS,
                inputs=INPUTS_DIRECTORY,
                code="" if role.code is None else CODE_DIRECTORY,
                checkpoint="" if role.checkpoint is None else role.checkpoint.target,
                workdir=role.workdir or "",
                interface=self._bench.interface,
            )
        return LaunchSite(
            config=str(directory.config),
            outputs=str(directory.outputs),
            status=str(directory.status),
            inputs=str(directory.inputs.absolute() if role.inputs else directory.inputs),
            code="" if role.code is None else str(directory.code),
            checkpoint="" if role.checkpoint is None else str(directory.checkpoint.absolute()),
            workdir=str(process_workdir(role, directory)),
            programs=str(directory.programs.absolute()) if doored else "",
            inside=str(directory.programs.absolute() / INSIDE),
            door=str(directory.door.absolute()) if doored else "",
            interface=self._bench.interface,
        )

    def _with_inputs(self, assignment: Assignment, directory: ExecutionDirectory, launched: Launch) -> Launch:
        """The same with the file that says what inputs there are, where the job has any."""
        role = assignment.role
        if not role.inputs:
            return launched
        seen = {each.name: f"{directory.inputs.absolute()}/{each.name}" for each in role.inputs}
        if role.runtime is RuntimeKind.DOCKER:
            public = Dialect.VALOHAI in assignment.dialects
            seen = {each.name: input_place(each, valohai=public) for each in role.inputs}
        listed = self._bench.inputs.listed(assignment, seen)
        return replace(launched, config_files={**launched.config_files, INPUTS_FILE: listed})

    def _volumes(self, assignment: Assignment, directory: ExecutionDirectory) -> Mapping[str, str]:
        """The directories of the volumes as user code sees them, by the variables that lead to them."""
        role = assignment.role
        if role.runtime is RuntimeKind.DOCKER:
            return {volume.variable: volume.target for volume in role.volumes}
        paths = self._bench.directories.volumes.paths(directory, assignment.project, role.volumes)
        return {each.variable: str(paths[each.name].absolute()) for each in role.volumes if each.name in paths}

    async def _start(self, execution: ExecutionId) -> Started:
        bench, live = self._bench, self._bench.live[execution]
        assert live.sandbox is not None
        await bench.guard.tell_killer()
        if not self._state.fencing.may_start(execution, bench.guard.clock.now()):
            raise ExecutionError(FailureKind.NODE_LOST, TOO_LATE)
        bench.held.let_go(execution)
        live.started = True
        await live.sandbox.start()
        bench.secrets.handed_over(execution)
        self._exits.await_exit(execution)
        live.have_noted(partial(self._note_start, execution, datetime.now(UTC)))
        return Started(execution=execution)

    def _note_start(self, execution: ExecutionId, at: datetime) -> None:
        if self._work.goes_on:
            self._work.watch(execution, self._bench.live[execution].note_start(at))

    async def _halt(self, action: Halt, interrupted: "asyncio.Task[None] | None") -> Halted:
        if interrupted is not None:
            interrupted.cancel()
        await ended(interrupted)
        live = self._bench.live.get(action.execution)
        if live is not None and live.sandbox is not None:
            if action.notice is not None and live.started:
                await self._give_notice(live, action.notice)
            stop = partial(live.sandbox.stop, await self._grace(action), action.signal)
            # What ran may run on as long as nobody can stop it; what never ran holds nothing that others need.
            await (insist(action.execution, stop) if live.started else stop())
        if not (live and live.started):
            self._bench.held.vacate(action.execution)
            await self._bench.secrets.clear(action.execution)
        return Halted(execution=action.execution)

    async def _give_notice(self, live: LiveExecution, notice: StopNotice) -> None:
        """Have user code find out why it is stopped, and until when; it is stopped all the same where it cannot."""
        try:
            await asyncio.to_thread(give_notice, live.directory, notice)
        except OSError as problem:
            log.warning(
                "an execution gets no notice", extra={"directory": live.directory.path.name, "why": str(problem)}
            )

    async def _grace(self, action: Halt) -> timedelta:
        """The time that it has to end; one that is cut off is marked so on disk first."""
        if not action.fenced:
            return action.grace
        guard = self._bench.guard
        await guard.mark(action.execution, action.fenced)
        return timedelta(seconds=guard.clock.real(action.grace.total_seconds()))

    async def _remove(self, execution: ExecutionId, halting: "asyncio.Task[None] | None") -> Removed:
        bench = self._bench
        await ended(halting)
        live = bench.live.get(execution)
        if live is not None and live.sandbox is not None:
            await insist(execution, live.sandbox.remove)
        bench.held.free(execution)
        self._work.stop_watching(execution)
        bench.logs.forget(execution)
        if live is not None:
            live.close()
        await bench.secrets.forget(execution)
        bench.code.forget(execution)
        bench.inputs.forget(execution)
        await insist(execution, partial(asyncio.to_thread, bench.directories.clear, bench.directories.of(execution)))
        if (
            (local := self._state.ledger.get(execution)) is not None
            and local.wanted.store_again
            and may_go(local.outputs)
        ):
            await insist(execution, partial(asyncio.to_thread, bench.directories.drop_kept_outputs, execution))
        bench.live.pop(execution, None)
        bench.usage.forget(execution)
        self._work.forget(execution)
        log.info("execution cleared away", extra={"execution": execution})
        return Removed(execution=execution)
