"""Fencing on a real node: a clock, deadlines on disk, a keeper beside it, peers to ask."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from agent.core.containers.spec import ContainerPart, container_name
from agent.core.deadlines import LONGEST_SLEEP, ExecutionDeadline, Notes
from agent.core.events import Fenced
from agent.core.fence import (
    AskPeers,
    Contact,
    CutOff,
    Disconnected,
    FenceEvent,
    FenceTimePassed,
    Fencing,
    PeersAnswered,
)
from agent.core.ledger import Ledger
from agent.core.terms import AttemptKey, Guarded
from agent.fencing.clock import Clock
from agent.fencing.deadlines import mark_fenced, read_notes, write_notes
from agent.fencing.killer import Killer
from agent.fencing.peers import ANSWER_LIMIT, PeerClient, Shown
from agent.runtimes.kernel.pids import boot_id
from muster.domain.gangs.fence import Fence, PeerWord
from muster.domain.gangs.plan import Report
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.rpc.channel import NOTHING

log = logging.getLogger(__name__)

RETRY = 0.5
"""Seconds until deadlines that could not be noted are noted again."""
NOTED_AFTER = 0.05
"""Seconds from the start of user code until the disk has its deadline: all of a gang start at once.

The coordinator hears later that it runs. The keeper knows by then; and what an agent that is killed before has not
noted, the next one kills.
"""
TIDIED_AFTER = 1.0
"""Seconds after the end of user code until its deadline is taken back, which harms nobody: nothing is left to kill."""
MARK_LIMIT = 0.2
"""Seconds that a stop waits for the disk to take down why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceSite:
    """Where things are on the node."""

    node: NodeId
    state: Path
    rooms: Path
    """The directories of executions."""
    outputs: Path
    """Where what they leave is kept."""
    docker_socket: Path | None = None


class FenceGuard:
    """Keeps the executions of one node from running beside later attempts."""

    def __init__(
        self, site: FenceSite, keeper: Killer | None = None, clock: Clock | None = None, shown: Shown = lambda: NOTHING
    ) -> None:
        self.ledger = Ledger()
        """What runs; the loop feeds it."""
        self.site = site
        self._keeper = keeper or Killer()
        self.clock = clock or Clock()
        self._fencing = Fencing(self.ledger, self.clock.now())
        self._client = PeerClient(site.node, shown)
        self._expecting = False
        """Whether something is to run that has a deadline."""
        self._news = asyncio.Event()
        self._changed = asyncio.Event()
        """Set when deadlines may have to be noted."""
        self._guarded: tuple[Guarded, ...] = ()
        """What ran when it was last looked at."""
        self._ordered: list[AskPeers | CutOff] = []
        self._noted: Mapping[ExecutionId, float] = {}
        """On disk."""
        self._told: Mapping[ExecutionId, float] = {}
        """To the keeper."""
        self._due: tuple[float, asyncio.TimerHandle] | None = None
        """After how long they are to be noted, and what sees to it."""
        self._noting = asyncio.Lock()
        self._telling = asyncio.Lock()

    async def begin(self) -> None:
        """Go on from what was noted before; once the ledger knows what was recovered."""
        noted = await asyncio.to_thread(self._read)
        self._fencing = Fencing(self.ledger, self.clock.now(), noted)
        if self._fencing.deadlines():
            await asyncio.to_thread(self._keeper.start)
            await self._note()
        else:
            await self._tidy()

    async def run(self, take: Callable[[Fenced], None]) -> None:
        """Ask, note and cut off as time passes, until cancelled; `take` tells the loop."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_noted(), name=f"{self.site.node}: deadlines")
                while True:
                    self._news.clear()
                    self._step(FenceTimePassed())
                    await self._carry_out(tasks, take)
                    self._have_noted()
                    if self._fencing.in_contact(self.clock.now()):
                        await self._client.close()  # there is nothing to ask
                    await self._rest()
        finally:
            await self._client.close()

    async def close(self, *, stopped: bool) -> None:
        """Leave what runs on to the keeper; `stopped` says that nothing does."""
        if stopped and (self._noted or self._told):
            with suppress(OSError):
                await asyncio.to_thread(self._keeper.tell, self.site.state, self._notes({}))
            await self._tidy()
        else:
            with suppress(OSError):
                await self._note()
        await asyncio.to_thread(self._keeper.close, self.site.state)  # other nodes may share it

    # what the link, the loop and peers say and ask

    def contact(self, sent_at: float) -> None:
        """The coordinator has acknowledged what was sent then."""
        self._step(Contact(sent_at=sent_at))
        self._news.set()

    def disconnected(self) -> None:
        """The stream to the coordinator has ended."""
        self._step(Disconnected())
        self._news.set()

    def look(self) -> None:
        """The ledger has changed; only what runs matters here."""
        guarded = self.ledger.guarded()
        if guarded != self._guarded:
            self._guarded = guarded
            self._news.set()

    def expect(self, fence: Fence) -> None:
        """Something on these terms is being prepared: have the keeper there by the time it starts."""
        if not self._expecting and (fence.witnesses or fence.on_disconnect is OnDisconnect.STOP):
            self._expecting = True
            self._changed.set()

    async def let_start(self, execution: ExecutionId) -> None:
        """Have the keeper know by when it must be dead; raises ExecutionError or OSError if it must not start.

        The disk comes after that. Should the agent be killed before, the next one finds no note and kills it at once.
        """
        await self._tell_keeper()
        if not self._fencing.may_start(execution, self.clock.now()):
            message = "its agent had no word from the coordinator for so long that it did not start it"
            raise ExecutionError(FailureKind.NODE_LOST, message)

    def told(self, report: Report) -> Report:
        """A report as it is sent now."""
        no_permit_for = self._fencing.no_permit_for(report.execution, self.clock.now())
        return report if no_permit_for is None else replace(report, no_permit_for=no_permit_for)

    def secret(self, attempt: AttemptKey) -> bytes | None:
        """With what peers of an attempt sign."""
        terms = self.ledger.attempt(attempt)
        return None if terms is None else terms.fence.key

    def answer(self, attempt: AttemptKey) -> PeerWord:
        """What peers of an attempt hear."""
        return self._fencing.answer(attempt, self.clock.now())

    # deadlines

    def _step(self, event: FenceEvent) -> None:
        self._ordered += self._fencing.step(event, self.clock.now())

    async def _carry_out(self, tasks: asyncio.TaskGroup, take: Callable[[Fenced], None]) -> None:
        orders, self._ordered = self._ordered, []
        for order in orders:
            if isinstance(order, AskPeers):
                tasks.create_task(self._ask(order), name=f"{self.site.node}: ask peers")
                continue
            log.warning("execution is cut off", extra={"execution": order.execution, "cause": order.message})
            with suppress(TimeoutError):  # a disk that hangs must not save anybody
                async with asyncio.timeout(MARK_LIMIT):
                    await asyncio.to_thread(mark_fenced, self.site.rooms / order.execution, order.message)
            grace = timedelta(seconds=self.clock.real(order.grace.total_seconds()))
            take(Fenced(execution=order.execution, grace=grace, message=order.message))

    async def _ask(self, ask: AskPeers) -> None:
        words = await self._client.ask(ask, self.clock.real(ANSWER_LIMIT))
        self._step(PeersAnswered(attempt=ask.attempt, asked_at=ask.asked_at, words=words))
        self._news.set()

    async def _rest(self) -> None:
        """Until there is news, or a deadline."""
        wake_at = self._fencing.wake_at()
        limit = None if wake_at is None else max(0.0, self.clock.real(wake_at - self.clock.now()))
        if limit is not None:
            limit = min(limit, LONGEST_SLEEP)
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._news.wait()

    def _have_noted(self) -> None:
        """At once what the keeper does not know; of starts it does, and after an end nobody waits."""
        deadlines = self._fencing.deadlines()
        if deadlines.items() - self._told.items():
            self._changed.set()
        elif deadlines.items() - self._noted.items():
            self._note_after(NOTED_AFTER)
        elif not deadlines == self._noted == self._told:
            self._note_after(TIDIED_AFTER)

    def _note_after(self, seconds: float) -> None:
        """Also if more happens meanwhile, but what has ended by then need not be noted as started."""
        if self._due is not None:
            if self._due[0] == seconds:
                return
            self._due[1].cancel()
        self._due = seconds, asyncio.get_running_loop().call_later(seconds, self._note_now)

    def _note_now(self) -> None:
        self._due = None
        self._changed.set()

    async def _keep_noted(self) -> None:
        """Note what has changed, beside everything else: disks may be slow."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                if self._expecting and not self._keeper.there:
                    await asyncio.to_thread(self._keeper.start)
                await self._note()
            except OSError as error:
                log.warning("deadlines cannot be noted", extra={"node": self.site.node, "cause": str(error)})
                self._changed.set()
                await asyncio.sleep(RETRY)

    async def _note(self) -> None:
        """Tell the keeper, and the disk; nothing where nothing has changed."""
        async with self._noting:
            deadlines = self._fencing.deadlines()
            # The keeper comes first: it must hear of a contact also when the disk is full.
            await self._tell_keeper()
            if deadlines != self._noted:
                await asyncio.to_thread(write_notes, self.site.state, self._notes(deadlines))
                self._noted = deadlines

    async def _tidy(self) -> None:
        """Note that nothing runs, so that no keeper, nor one of an agent before this one, waits for a deadline.

        And that this agent is here, before it runs anything: its own keeper would take what another one noted for the
        word of a later agent.
        """
        with suppress(OSError):
            await asyncio.to_thread(write_notes, self.site.state, self._notes({}))

    async def _tell_keeper(self) -> None:
        async with self._telling:
            deadlines = self._fencing.deadlines()
            if deadlines == self._told:
                return
            notes = self._notes(deadlines)
            if not self._keeper.tell_at_once(self.site.state, notes):
                await asyncio.to_thread(self._keeper.tell, self.site.state, notes)
            self._told = deadlines

    def _notes(self, deadlines: Mapping[ExecutionId, float]) -> Notes:
        return Notes(
            boot=boot_id(),
            agent=self._keeper.name,
            deadlines=tuple(self._deadline(execution, dead_by) for execution, dead_by in deadlines.items()),
        )

    def _deadline(self, execution: ExecutionId, dead_by: float) -> ExecutionDeadline:
        socket = self.site.docker_socket
        return ExecutionDeadline(
            execution=execution,
            dead_by=self.clock.real(dead_by),
            room=str((self.site.rooms / execution).absolute()),
            container=container_name(execution, ContainerPart.USER) if socket is not None else "",
            socket=str(socket or ""),
        )

    def _read(self) -> dict[ExecutionId, float]:
        try:
            notes = read_notes(self.site.state)
        except ValueError as error:
            log.warning("the deadlines of before cannot be read", extra={"cause": str(error)})
            return {}
        if notes is None or notes.boot != boot_id():
            return {}
        return {ExecutionId(each.execution): self.clock.shown(each.dead_by) for each in notes.deadlines}
