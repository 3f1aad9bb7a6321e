"""The agent's loop: events go into the core one by one, the actions that come out are carried out beside each other."""

import asyncio
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from agent.attach.companion import Companion
from agent.attach.door import GangCommands
from agent.attach.kept.main_program import MainProgram
from agent.attach.kept.shells import KeptShells
from agent.attach.relayed.attachments import NotAttachableError
from agent.core.actions import Action, AnswerPeer, NoteDeadlines, Tell
from agent.core.deadlines import LONGEST_SLEEP
from agent.core.events import Began, Event, FenceTimePassed, PeerAsked
from agent.core.step import AgentState, Now, step
from agent.loop.actions import Actions
from agent.loop.checkpoints import CheckpointWatch
from agent.loop.disk import VolumeWatch
from agent.loop.doors import ExecutionDoors
from agent.loop.exits import ExecutionWatches, Exits
from agent.loop.looks import tell_busy
from agent.loop.recovery import recovered
from agent.loop.saving.live import LiveOutputWatch
from agent.loop.uses import UseWatch
from agent.loop.workbench import OngoingWork, Workbench
from agent.mailbox import Outbox
from agent.runtimes.runtime import Sandbox
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import AttemptId, ExecutionId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import RuntimeKind

SHUTDOWN_GRACE = timedelta(seconds=5)


class Loop:
    """The owner of a node's state: takes events out of the inbox, has the core decide, and has that carried out."""

    def __init__(self, bench: Workbench, outbox: Outbox, state: AgentState, commands: GangCommands) -> None:
        """Begin with nothing; others may read `state`, nobody else changes it.

        `commands` carries out what user code wants to run in other executions.
        """
        self._commands = commands
        self._bench = bench
        self._outbox = outbox
        self._state = state
        self._clock = bench.guard.clock
        self._alarm: tuple[float, asyncio.TimerHandle] | None = None
        """When time is to pass, on the clock of fencing, and what sees to it."""
        self._doors: ExecutionDoors | None = None
        """Doors of the executions, while the loop works."""

    # what peers ask

    def secret(self, attempt: AttemptId) -> bytes | None:
        """The secret with which peers of an attempt sign; None: the attempt is not known here."""
        terms = self._state.ledger.attempt(attempt)
        return None if terms is None else terms.fence.key

    def answer(self, attempt: AttemptId) -> PeerWord:
        """The word that peers of an attempt hear; it counts as given from here on."""
        given = self._step(PeerAsked(attempt=attempt))
        return next(action.word for action in given if isinstance(action, AnswerPeer))

    # what people ask who attach

    async def companion(self, execution: ExecutionId) -> Companion:
        """The companion of a running execution, started where there is none. Raises NotAttachableError."""
        if self._doors is None:
            raise NotAttachableError("the agent is just starting, or ending")
        return await self._doors.companion(execution)

    async def main_program(self, execution: ExecutionId) -> MainProgram:
        """The main program of a running execution, which may not have come yet. Raises NotAttachableError."""
        if self._doors is None:
            raise NotAttachableError("the agent is just starting, or ending")
        return await self._doors.main_program(execution)

    def kept_shells(self, execution: ExecutionId) -> KeptShells | None:
        """The kept shells of an execution; None: it has none, as nobody has attached to it."""
        return None if self._doors is None else self._doors.kept_shells(execution)

    async def exited(self, execution: ExecutionId) -> Exit | None:
        """Wait until user code of an execution has ended; None: it is not known here."""
        live = self._bench.live.get(execution)
        return None if live is None or live.sandbox is None else await live.sandbox.exited()

    # its life

    async def recover(self, away: Collection[RuntimeKind] = ()) -> None:
        """Take over what a former life of this agent left, and its deadlines; before `run`."""
        async for found in recovered(self._bench, away):
            self._step(found)
        self._step(Began(noted=await self._bench.guard.recorded()))
        await self._bench.guard.begin(self._state.deadlines)

    async def run(self) -> None:
        """Work until cancelled; sandboxes then stay as they are."""
        try:
            async with asyncio.TaskGroup() as tasks:
                work = OngoingWork(tasks)
                saves = CheckpointWatch(self._bench, self._state, work)
                disk = VolumeWatch(self._bench, self._state, work)
                uses = UseWatch(self._bench, self._state, work)
                outputs = LiveOutputWatch(self._bench, self._state, work)
                exits = Exits(self._bench, work, ExecutionWatches(uses, saves, disk, outputs))
                doors = ExecutionDoors(self._commands, work, self._bench.live)
                actions = Actions(self._bench, self._state, work, exits, doors)
                try:
                    await self._take_up(work, exits, doors)
                    self._doors = doors
                    self._set_alarm(self._state.wake_at)
                    while True:
                        self._turn(await self._bench.inbox.some(), actions, exits)
                finally:
                    self._doors = None
                    work.end()
        finally:
            self._set_alarm(None)

    async def shut_down(self, *, stop: bool) -> None:
        """Let go of everything, after `run` was cancelled; executions are ended, or left to the next agent."""
        bench = self._bench
        for execution in self._state.ledger.live():
            if (busy := bench.busy.of(execution)) is not None:
                await tell_busy(bench, execution, busy)
        live = bench.live.values() if stop else ()
        sandboxes = [live.sandbox for live in live if live.sandbox is not None]
        await asyncio.gather(*map(_end, sandboxes), return_exceptions=True)
        await asyncio.gather(*(bench.secrets.clear(sandbox.execution) for sandbox in sandboxes))
        for execution in self._state.ledger.executions():
            bench.held.free(execution)
        await asyncio.to_thread(bench.directories.close)

    def close(self) -> None:
        """Close the logs, once no runtime writes into them any more. Nothing else may be called afterwards."""
        for live in self._bench.live.values():
            live.close()

    async def _take_up(self, work: OngoingWork, exits: Exits, doors: ExecutionDoors) -> None:
        """Go on with what was recovered."""
        going_on = set(self._state.ledger.live())
        for execution, live in list(self._bench.live.items()):
            self._bench.logs.follow(execution, live.spool)
            if execution in going_on:
                exits.await_exit(execution)
                await doors.open_again(live)
            else:
                work.watch(execution, live.spool.end())

    # its turns

    def _step(self, event: Event) -> list[Action]:
        return step(self._state, event, Now(wall=datetime.now(UTC), boot=self._clock.now()))

    def _turn(self, events: Iterable[Event], actions: Actions, exits: Exits) -> None:
        """Take events in, and begin what is to be done because of them."""
        reports: list[Report] = []
        deadlines: NoteDeadlines | None = None
        for event in events:
            for action in self._step(event):
                match action:
                    case Tell():
                        reports.append(action.report)
                        if _never_ran(action.report):
                            exits.end_log(action.report.execution)
                    case NoteDeadlines():
                        deadlines = action
                    case _:
                        actions.carry_out(action)
        if deadlines is not None:  # after the starts were begun, which tell the killer by themselves
            self._bench.guard.note(deadlines.deadlines)
        self._set_alarm(self._state.wake_at)
        if reports:
            self._outbox.tell(reports)

    def _set_alarm(self, due: float | None) -> None:
        """Have FenceTimePassed come then, or before: a machine that slept wakes in the middle."""
        if self._alarm is not None:
            if self._alarm[0] == due:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if due is not None:
            left = min(max(0.0, self._clock.real(due - self._clock.now())), LONGEST_SLEEP)
            self._alarm = due, asyncio.get_running_loop().call_later(left, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._bench.inbox.put(FenceTimePassed())


def _never_ran(report: Report) -> bool:
    """Whether an execution is over of which no exit tells: it prints nothing more."""
    return report.stage in {Stage.FAILED, Stage.STOPPED} and not report.log_complete and report.exit is None


async def _end(sandbox: Sandbox) -> None:
    """End it so that the next agent does not take for the end of user code what was done to it here."""
    await sandbox.stop(SHUTDOWN_GRACE)
    await sandbox.remove()
