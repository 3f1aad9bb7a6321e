"""The agent's loop: events go into the core one by one, the actions that come out are carried out beside each other."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import assert_never

from agent.core.actions import Action, Arm, Halt, Prepare, Remove, Start, Tell
from agent.core.events import (
    ActionFailed,
    Armed,
    Event,
    Exited,
    Fenced,
    Halted,
    LogCompleted,
    Prepared,
    Progressed,
    Recovered,
    Removed,
    Started,
)
from agent.core.launching.launch import CONTAINER_CONFIG, CONTAINER_OUTPUTS, launch
from agent.executions.directories import ExecutionDirectories
from agent.executions.file_faults import file_fault
from agent.executions.held_resources import HeldResources
from agent.executions.layout import ExecutionDirectory
from agent.executions.ports import PortLedger
from agent.executions.record import is_damaged, noted, record_of
from agent.fencing.deadlines import why_fenced
from agent.fencing.guard import FenceGuard
from agent.logs.file import DEFAULT_LIMIT
from agent.logs.push import LogPusher
from agent.logs.spool import LogSpool
from agent.loop.live_execution import LiveExecution
from agent.loop.retry import insist
from agent.runtimes.runtime import Runtime, Sandbox
from agent.secrets.store import ExecutionSecrets
from muster.domain.gangs.plan import Assignment, Report, Stage
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import RuntimeKind

log = logging.getLogger(__name__)

TAIL_LINES = 20
"""Last lines that go into the message of a failure."""
TAIL_PATIENCE, FAULT_PATIENCE = 0.1, 0.2
"""Seconds that the report of a failed exit, and with it the end of its gang, waits for last lines and GPU faults."""
NO_TERMS = "its record (room.json) on the node is damaged, so nobody knew how long it may run without the coordinator"
SHUTDOWN_GRACE = timedelta(seconds=5)


class Loop:
    """Owns the ledger and the sandboxes of one node."""

    def __init__(
        self,
        *,
        guard: FenceGuard,
        address: str,
        interface: str | None,
        runtimes: Mapping[RuntimeKind, Runtime],
        ports: PortLedger,
    ) -> None:
        self.ledger = guard.ledger
        self.tell: Callable[[Sequence[Report]], None] = _nobody
        """Called with reports for the coordinator."""
        self._guard = guard
        self._rooms = ExecutionDirectories(guard.site.rooms, guard.site.outputs)
        self._address = address
        self._interface = interface
        self._runtimes = runtimes
        self._holdings = HeldResources(ports, self.ledger.gpus)
        self.log_limit = DEFAULT_LIMIT
        self.secrets = ExecutionSecrets()
        self.catch_up_on_faults: Callable[[], Awaitable[None]] = _at_once
        """Returns when every fault of a GPU that came before the call is known here."""
        self._events: deque[Event] = deque()
        """What happened and is not taken in yet: while it does not run, nothing is."""
        self._runs = False
        self._occupants: dict[ExecutionId, LiveExecution] = {}
        self._working: dict[ExecutionId, asyncio.Task[None]] = {}
        self._watching: dict[ExecutionId, list[asyncio.Task[None]]] = {}
        self._tasks: asyncio.TaskGroup
        self._logs: LogPusher

    def take(self, event: Event) -> None:
        """Something happened; what is to be done because of it begins at once."""
        self._events.append(event)
        if self._runs:
            self._turn()

    def complete_log(self, execution: ExecutionId) -> None:
        """The coordinator has all of a log."""
        self.take(LogCompleted(execution=execution))

    async def recover(self, away: Collection[RuntimeKind] = ()) -> None:
        """Take over what a former life of this agent left; before `run`.

        What a runtime that is away has started counts as running; the rest of it is cleared away when it is back.
        """
        await asyncio.to_thread(self._rooms.begin)
        now = datetime.now(UTC)
        for runtime in self._runtimes.values():
            for sandbox, spool, started in await runtime.recover(self._rooms.path):
                spool.limit, room = self.log_limit, self._rooms.of(sandbox.execution)
                self.secrets.adopt(sandbox.execution, started=started)
                self._occupants[sandbox.execution] = LiveExecution(runtime.kind, room, spool, sandbox, started)
                self.ledger.step(await self._adopt(room, sandbox, started=started), now)
        await asyncio.to_thread(self.secrets.sweep)
        if not away:
            await asyncio.to_thread(self._sweep)

    async def _adopt(self, room: ExecutionDirectory, sandbox: Sandbox, *, started: bool) -> Recovered:
        """What is known of an execution of an earlier agent; its ports are leased to it again while it runs."""
        ended = sandbox.ended  # before the keeper's word is looked for, which comes before the end that it brings
        record, fenced = await asyncio.to_thread(lambda: (noted(room), why_fenced(room.path)))
        found = Recovered(execution=sandbox.execution, started=started, ended=ended, fenced=fenced)
        if record is None:
            if await asyncio.to_thread(is_damaged, room) and started and not ended:
                self._events.append(Fenced(execution=found.execution, grace=timedelta(0), message=NO_TERMS))
            return found
        self._holdings.adopt(found.execution, record.ports, published=record.published)
        if ended or not started:
            self._holdings.leave(found.execution, vacant=sandbox.vacant or not started)
        terms, started_at = record.terms, record.started_at
        return replace(found, address=record.address, ports=record.ports, started_at=started_at, terms=terms)

    async def clear_leftovers(self, kind: RuntimeKind) -> None:
        """Remove what a runtime that was away at the start still has: the coordinator was told that it is gone."""
        for sandbox, spool, _ in await self._runtimes[kind].recover(self._rooms.path):
            if sandbox.execution not in self._occupants:
                await sandbox.remove()
                spool.close()
                await asyncio.to_thread(self._rooms.clear, self._rooms.of(sandbox.execution))

    async def run(self, logs: LogPusher) -> None:
        """Work until cancelled; sandboxes then stay as they are."""
        self._logs = logs
        async with asyncio.TaskGroup() as self._tasks:
            for execution, occupant in list(self._occupants.items()):
                self._logs.follow(execution, occupant.spool)
                if execution in self.ledger.live():
                    self._watch(execution, self._await_exit(execution))
                else:
                    self._watch(execution, occupant.spool.end())
            self._runs = True
            try:
                self._turn()
                await asyncio.get_running_loop().create_future()
            finally:
                self._runs = False

    async def shut_down(self, *, stop: bool) -> None:
        """Let go of everything, after `run` was cancelled; executions are ended, or left to the next agent."""
        occupants = self._occupants.values() if stop else ()
        sandboxes = [occupant.sandbox for occupant in occupants if occupant.sandbox is not None]
        await asyncio.gather(*map(_end, sandboxes), return_exceptions=True)
        await asyncio.gather(*(self.secrets.clear(sandbox.execution) for sandbox in sandboxes))
        for execution in self._occupants.keys() | self._working.keys():
            self._holdings.free(execution)
        await asyncio.to_thread(self._rooms.close)

    def close(self) -> None:
        """Close the logs, once no runtime writes into them any more. Nothing else may be called afterwards."""
        for occupant in self._occupants.values():
            occupant.close()

    def _turn(self) -> None:
        reports: list[Report] = []
        while self._events:
            for action in self.ledger.step(self._events.popleft(), datetime.now(UTC)):
                if isinstance(action, Tell):
                    reports.append(self._guard.told(action.report))
                    self._end_log(action.report)
                else:
                    self._carry_out(action)
        self._guard.look()
        if reports:
            self.tell(reports)

    def _carry_out(self, action: Action) -> None:
        match action:
            case Prepare():
                self._work(action.assignment.execution, partial(self._prepare, action.assignment))
            case Arm():
                self._work(action.assignment.execution, partial(self._arm, action))
            case Start():
                self._work(action.execution, partial(self._start, action.execution))
            case Halt():
                self._work(action.execution, partial(self._halt, action, self._working.get(action.execution)))
            case Remove():
                halting = self._working.get(action.execution)
                self._work(action.execution, partial(self._remove, action.execution, halting))
            case Tell():
                pass
            case _:
                assert_never(action)

    def _work(self, execution: ExecutionId, work: Callable[[], Awaitable[Event]]) -> None:
        """Carry out one action; what comes of it is an event, also where something goes wrong."""

        async def reported() -> None:
            try:
                event = await work()
            except ExecutionError as error:
                event = await self._failed(execution, error.kind, str(error))
            except OSError as error:
                event = await self._failed(execution, *file_fault(error))
            except Exception as error:
                log.exception("an action failed in an unforeseen way", extra={"execution": execution})
                message = f"the agent failed: {type(error).__name__}: {error}"
                event = await self._failed(execution, FailureKind.RUNTIME, message)
            self.take(event)

        self._working[execution] = self._tasks.create_task(reported(), name=f"{execution}: action")

    async def _failed(self, execution: ExecutionId, kind: FailureKind, message: str) -> ActionFailed:
        told = self.secrets.message(execution, message)
        occupant = self._occupants.get(execution)
        never_ran = occupant is None or not occupant.started
        self._holdings.leave(execution, vacant=never_ran)
        if never_ran:
            await self.secrets.clear(execution)
        return ActionFailed(execution=execution, kind=kind, message=told)

    def _watch(self, execution: ExecutionId, work: Coroutine[None, None, None]) -> None:
        task = self._tasks.create_task(work, name=f"{execution}: watch")
        self._watching.setdefault(execution, []).append(task)

    def _end_log(self, report: Report) -> None:
        """An execution that never ran prints nothing more; one that never had a room never printed."""
        if report.stage not in {Stage.FAILED, Stage.STOPPED} or report.log_complete or report.exit is not None:
            return
        occupant = self._occupants.get(report.execution)
        if occupant is not None:
            self._watch(report.execution, occupant.spool.end())
        else:
            self._events.append(LogCompleted(execution=report.execution))

    # the actions

    async def _prepare(self, assignment: Assignment) -> Prepared:
        execution, kind = assignment.execution, assignment.role.runtime
        runtime = self._runtimes.get(kind)
        if runtime is None:
            raise ExecutionError(FailureKind.INVALID_OPTION, f"this node's agent runs no {kind} executions")
        self._guard.expect(assignment.fence)

        def progress(detail: str) -> None:
            self.take(Progressed(execution=execution, detail=detail))

        ports = await self._holdings.lease(assignment, progress)
        room, record = self._rooms.of(execution), record_of(assignment, self._address, ports)
        if not self._rooms.take_spare(room, record):
            await asyncio.to_thread(self._rooms.make, room, record)
        spool = LogSpool(room.log, self.log_limit)
        occupant = self._occupants[execution] = LiveExecution(runtime.kind, room, spool, record=record)
        self._logs.follow(execution, spool)
        await self.secrets.fetch(assignment, progress)
        occupant.sandbox = await runtime.prepare(assignment, room, occupant.spool, ports, progress)
        return Prepared(execution=execution, address=self._address, ports=ports)

    async def _arm(self, action: Arm) -> Armed:
        occupant = self._occupants[action.assignment.execution]
        assert occupant.sandbox is not None
        container = action.assignment.role.runtime is RuntimeKind.DOCKER
        inside = (CONTAINER_CONFIG, CONTAINER_OUTPUTS)
        directories = inside if container else (str(occupant.room.config), str(occupant.room.outputs))
        launched = launch(action.assignment, action.roster, directories, self._interface)
        await occupant.sandbox.arm(self.secrets.added(action.assignment, launched))
        return Armed(execution=action.assignment.execution)

    async def _start(self, execution: ExecutionId) -> Started:
        occupant = self._occupants[execution]
        assert occupant.sandbox is not None
        await self._guard.let_start(execution)
        self._holdings.let_go(execution)
        occupant.started = True
        await occupant.sandbox.start()
        self.secrets.handed_over(execution)
        self._watch(execution, self._await_exit(execution))
        occupant.have_noted(partial(self._note_start, execution, datetime.now(UTC)))
        return Started(execution=execution)

    def _note_start(self, execution: ExecutionId, at: datetime) -> None:
        if self._runs:
            self._watch(execution, self._occupants[execution].note_start(at))

    async def _await_exit(self, execution: ExecutionId) -> None:
        occupant = self._occupants[execution]
        assert occupant.sandbox is not None
        try:
            exit_ = await occupant.sandbox.exited()
        except ExecutionError as error:
            self.take(await self._failed(execution, error.kind, str(error)))
            await self._vacate(execution, occupant.sandbox)
            return
        tail: tuple[str, ...] = ()
        if exit_.code != 0:
            with suppress(TimeoutError):  # something that outlives user code may hold its output
                async with asyncio.timeout(TAIL_PATIENCE):
                    await occupant.sandbox.drained()
            with suppress(TimeoutError):
                async with asyncio.timeout(FAULT_PATIENCE):
                    await self.catch_up_on_faults()
            tail = occupant.spool.tail(TAIL_LINES)
            await self._hear_keeper(occupant.room)
        await self._finished(self._working.get(execution))  # told to stop, it has ended when all of it has
        self._holdings.leave(execution, vacant=occupant.sandbox.vacant)
        self.take(Exited(execution=execution, exit=exit_, log_tail=tail))
        await occupant.sandbox.drained()
        if occupant.sandbox.vacant:
            self._holdings.vacate(execution)
        else:  # not here: the log is not to wait for what cannot be killed
            self._watch(execution, self._vacate(execution, occupant.sandbox))
        await occupant.spool.end()
        if not occupant.spool.size:  # there is nothing to carry, nor to be told that it has arrived
            self._logs.forget(execution)
            self.complete_log(execution)
        await self.secrets.clear(execution)

    async def _vacate(self, execution: ExecutionId, sandbox: Sandbox) -> None:
        """End what is left of it, so that the next one can have what it had."""
        await insist(execution, sandbox.vacate)
        self._holdings.vacate(execution)

    async def _hear_keeper(self, room: ExecutionDirectory) -> None:
        """What the keeper killed did not end by itself."""
        message = await asyncio.to_thread(why_fenced, room.path)
        if message:
            self.take(Fenced(execution=ExecutionId(room.path.name), grace=timedelta(0), message=message))

    async def _halt(self, action: Halt, interrupted: "asyncio.Task[None] | None") -> Halted:
        if interrupted is not None:
            interrupted.cancel()
        await self._finished(interrupted)
        occupant = self._occupants.get(action.execution)
        if occupant is not None and occupant.sandbox is not None:
            stop = partial(occupant.sandbox.stop, action.grace)
            # What ran may run on as long as nobody can stop it; what never ran holds nothing that others need.
            await (insist(action.execution, stop) if occupant.started else stop())
        if not (occupant and occupant.started):
            self._holdings.vacate(action.execution)
            await self.secrets.clear(action.execution)
        return Halted(execution=action.execution)

    async def _remove(self, execution: ExecutionId, halting: "asyncio.Task[None] | None") -> Removed:
        await self._finished(halting)
        occupant = self._occupants.get(execution)
        if occupant is not None and occupant.sandbox is not None:
            await insist(execution, occupant.sandbox.remove)
        self._holdings.free(execution)
        for task in self._watching.pop(execution, []):
            task.cancel()
        self._logs.forget(execution)
        if occupant is not None:
            occupant.close()
        await self.secrets.forget(execution)
        await insist(execution, partial(asyncio.to_thread, self._rooms.clear, self._rooms.of(execution)))
        self._occupants.pop(execution, None)
        self._working.pop(execution, None)
        log.info("execution cleared away", extra={"execution": execution})
        return Removed(execution=execution)

    async def _finished(self, action: "asyncio.Task[None] | None") -> None:
        """Wait for an action to end, however it ends: a sandbox is asked for one thing at a time."""
        if action is not None and not action.done():
            await asyncio.wait([action])

    def _sweep(self) -> None:
        """Clear rooms that belong to nobody any more."""
        for path in self._rooms.path.iterdir():
            execution = ExecutionId(path.name)
            if execution not in self._occupants:
                self._rooms.clear(self._rooms.of(execution))


def _nobody(reports: Sequence[Report]) -> None:
    """There is no coordinator."""
    del reports


async def _at_once() -> None:
    """There are no faults to catch up on."""


async def _end(sandbox: Sandbox) -> None:
    """End it so that the next agent does not take for the end of user code what was done to it here."""
    await sandbox.stop(SHUTDOWN_GRACE)
    await sandbox.remove()
