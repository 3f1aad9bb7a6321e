"""Fencing on a real node: deadlines on disk, a killer beside it, peers to ask. What to do is told it by the loop."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.core.actions import AskPeers
from agent.core.containers.spec import ContainerPart, container_name
from agent.core.deadlines import ExecutionDeadline, Notes
from agent.core.events import PeersAnswered
from agent.fencing.clock import Clock
from agent.fencing.deadlines import mark_fenced, read_notes, write_notes
from agent.fencing.killer import Killer
from agent.fencing.peers import ANSWER_LIMIT, PeerClient
from agent.identity.peers import Shown
from agent.runtimes.kernel.pids import boot_id
from muster.domain.gangs.fence import Fence
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.rpc.channel import NOTHING

log = logging.getLogger(__name__)

RETRY = 0.5
"""Seconds until deadlines that could not be noted are noted again."""
NOTED_AFTER = 0.05
"""Seconds from the start of user code until the disk has its deadline: all of a gang start at once.

The coordinator hears later that it runs. The killer knows by then; and what an agent that is killed before has not
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
    executions: Path
    """Where the directories of executions are."""
    outputs: Path
    """Where what they leave is kept."""
    docker_socket: Path | None = None


class FenceGuard:
    """Carries out what keeps the executions of one node from running beside later attempts."""

    def __init__(
        self, site: FenceSite, killer: Killer | None = None, clock: Clock | None = None, shown: Shown = lambda: NOTHING
    ) -> None:
        self.site = site
        self.clock = clock or Clock()
        self._killer = killer or Killer()
        self._client = PeerClient(site.node, shown)
        self._expecting = False
        """Whether something is to run that has a deadline."""
        self._changed = asyncio.Event()
        """Set when deadlines may have to be noted."""
        self._deadlines: Mapping[ExecutionId, float] = {}
        """What the loop said last."""
        self._noted: Mapping[ExecutionId, float] = {}
        """Deadlines on disk."""
        self._told: Mapping[ExecutionId, float] = {}
        """Deadlines that the killer was told."""
        self._due: tuple[float, asyncio.TimerHandle] | None = None
        """After how long they are to be noted, and what sees to it."""
        self._noting = asyncio.Lock()
        self._telling = asyncio.Lock()

    async def recorded(self) -> dict[ExecutionId, float]:
        """The deadlines that the agent before this one left."""
        return await asyncio.to_thread(self._read)

    async def begin(self, deadlines: Mapping[ExecutionId, float]) -> None:
        """Have what was recovered noted as this agent's own, before it runs anything."""
        self._deadlines = deadlines
        if deadlines:
            await asyncio.to_thread(self._killer.start)
            await self._note()
        else:
            await self._tidy()

    async def run(self) -> None:
        """Note what has changed, beside everything else, until cancelled: disks may be slow."""
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                try:
                    if self._expecting and not self._killer.there:
                        await asyncio.to_thread(self._killer.start)
                    await self._note()
                except OSError as error:
                    log.warning("deadlines cannot be noted", extra={"node": self.site.node, "cause": str(error)})
                    self._changed.set()
                    await asyncio.sleep(RETRY)
        finally:
            await self._client.close()

    async def close(self, *, stopped: bool) -> None:
        """Leave what runs on to the killer; `stopped` says that nothing does."""
        if stopped and (self._noted or self._told):
            with suppress(OSError):
                await asyncio.to_thread(self._killer.tell, self.site.state, self._notes({}))
            await self._tidy()
        else:
            with suppress(OSError):
                await self._note()
        await asyncio.to_thread(self._killer.close, self.site.state)  # other nodes may share it

    # what the loop has it do

    def expect(self, fence: Fence) -> None:
        """Something on these terms is being prepared: have the killer there by the time it starts."""
        if not self._expecting and (fence.witnesses or fence.on_disconnect is OnDisconnect.STOP):
            self._expecting = True
            self._changed.set()

    def note(self, deadlines: Mapping[ExecutionId, float]) -> None:
        """Have the killer, and then the disk, know these deadlines in place of those of before.

        What is started in this turn of the event loop tells the killer by itself, so that is looked at afterwards.
        """
        self._deadlines = deadlines
        asyncio.get_running_loop().call_soon(self._have_noted)

    async def tell_killer(self) -> None:
        """Return once the killer knows every deadline. Raises OSError if there cannot be one.

        The disk comes later. Should the agent be killed before, the next one finds no note and kills it at once.
        """
        async with self._telling:
            deadlines = self._deadlines
            if deadlines == self._told:
                return
            notes = self._notes(deadlines)
            if not self._killer.tell_at_once(self.site.state, notes):
                await asyncio.to_thread(self._killer.tell, self.site.state, notes)
            self._told = deadlines

    async def mark(self, execution: ExecutionId, message: str) -> None:
        """Leave word on disk why an execution is cut off; a disk that hangs must not save it."""
        log.warning("execution is cut off", extra={"execution": execution, "cause": message})
        with suppress(TimeoutError):
            async with asyncio.timeout(MARK_LIMIT):
                await asyncio.to_thread(mark_fenced, self.site.executions / execution, message)

    async def ask(self, ask: AskPeers) -> PeersAnswered:
        """One round of questions, with the words that came in time."""
        words = await self._client.ask(ask, self.clock.real(ANSWER_LIMIT))
        return PeersAnswered(attempt=ask.attempt, asked_at=ask.asked_at, words=words)

    async def leave_peers(self) -> None:
        """Let go of the connections to peers."""
        await self._client.close()

    # deadlines

    def _have_noted(self) -> None:
        """Note at once what the killer does not know; it knows of each start already, and nobody waits for an end."""
        deadlines = self._deadlines
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

    async def _note(self) -> None:
        """Tell the killer, and the disk; nothing where nothing has changed."""
        async with self._noting:
            deadlines = self._deadlines
            # The killer comes first: it must hear of a contact also when the disk is full.
            await self.tell_killer()
            if deadlines != self._noted:
                await asyncio.to_thread(write_notes, self.site.state, self._notes(deadlines))
                self._noted = deadlines

    async def _tidy(self) -> None:
        """Note that nothing runs, so that no killer, nor one of an agent before this one, waits for a deadline.

        And that this agent is here, before it runs anything: its own killer would take what another one noted for the
        word of a later agent.
        """
        with suppress(OSError):
            await asyncio.to_thread(write_notes, self.site.state, self._notes({}))

    def _notes(self, deadlines: Mapping[ExecutionId, float]) -> Notes:
        return Notes(
            boot=boot_id(),
            agent=self._killer.name,
            deadlines=tuple(self._deadline(execution, dead_by) for execution, dead_by in deadlines.items()),
        )

    def _deadline(self, execution: ExecutionId, dead_by: float) -> ExecutionDeadline:
        socket = self.site.docker_socket
        return ExecutionDeadline(
            execution=execution,
            dead_by=self.clock.real(dead_by),
            directory=str((self.site.executions / execution).absolute()),
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
