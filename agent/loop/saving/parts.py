"""Has parts of checkpoints stored while user code runs, and the last ones once it has ended."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from agent.core.events import CheckpointsSeen
from agent.data.checkpoints.looking import CheckpointLook, looks
from agent.data.checkpoints.note import CheckpointNote, read_note, write_note
from agent.loop.live_execution import LiveExecution
from agent.loop.workbench import Workbench
from muster.domain.data.checkpoint import ToldCheckpoints
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.job import RuntimeKind

log = logging.getLogger(__name__)

PART_LOOK = 5.0
"""Seconds between two looks into a directory of checkpoints, and at least so many times as long as a look takes."""
LOOK_SHARE = 50
"""How many times as long as a look takes nobody looks again."""
LAST_LOOKS = 5
"""How often a store is looked through at the end, until the coordinator has heard of the last part."""
PART_AGAIN = 300.0
"""Seconds until a part that could not be stored is tried again, unless it changes."""


class PartStoring:
    """Stores the parts of one node's executions, each execution's one after the other."""

    def __init__(self, bench: Workbench, clock: Callable[[], float] = time.time, every: float = PART_LOOK) -> None:
        """Store nothing yet. `clock`: the time as file systems tell it; `every`: seconds between two looks."""
        self._bench = bench
        self._clock = clock
        self._every = every
        self._turns: defaultdict[ExecutionId, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._ending: set[ExecutionId] = set()
        """Executions whose user code has ended, and of which parts may follow."""
        self._tidied: dict[ExecutionId, int] = {}
        """The number of the newest part when a store was last looked through for older ones."""
        self._refused: dict[tuple[ExecutionId, str], tuple[str, float]] = {}
        """What could not be stored: as it was then, and when."""

    def begin(self, execution: ExecutionId, live: LiveExecution) -> CheckpointNote | None:
        """What an execution has stored so far, told at once; None: it saves nothing."""
        note = read_note(live.directory.path)
        if note is not None:
            self._tell(execution, note.told)
        return note

    async def watch(self, execution: ExecutionId, live: LiveExecution, runs: Callable[[], bool]) -> None:
        """Store what is finished, again and again, while user code runs."""
        if await asyncio.to_thread(self.begin, execution, live) is None:
            return
        while runs():
            began = self._clock()
            with suppress(UnavailableError):
                await self._store(execution, live, everything=False)
                await self._tidy(execution, live)
            await asyncio.sleep(max(self._every, LOOK_SHARE * (self._clock() - began)))

    def announce(self, execution: ExecutionId, live: LiveExecution) -> bool:
        """Say, before the end of user code is told, that parts may follow; whether they may."""
        note = read_note(live.directory.path)
        if note is not None:
            self._ending.add(execution)
            self._tell(execution, note.told)
        return note is not None

    async def finish(self, execution: ExecutionId, live: LiveExecution, *, well: bool) -> None:
        """Store what is finished after the end; `well`: user code ended by itself, so that it left nothing half-done.

        Where the depot is away, try for as long as the job says.
        """
        note = await asyncio.to_thread(read_note, live.directory.path)
        if note is None:
            return
        until = self._clock() + note.stall.total_seconds()
        while True:
            try:
                await self._store(execution, live, everything=well)
                break
            except UnavailableError as error:
                if self._clock() >= until:
                    log.warning("a checkpoint is given up", extra={"execution": execution, "cause": str(error)})
                    break
            await asyncio.sleep(self._every)
        note = await asyncio.to_thread(read_note, live.directory.path) or note
        for _ in range(LAST_LOOKS):
            if await self._tidy(execution, live):
                break
            await asyncio.sleep(min(1.0, self._every))
        with suppress(OSError):
            await asyncio.to_thread(self._bench.checkpoints.work().keep, live.directory)
        self._ending.discard(execution)
        self._tell(execution, note.told)
        self._turns.pop(execution, None)
        self._tidied.pop(execution, None)
        self._refused = {key: seen for key, seen in self._refused.items() if key[0] != execution}

    async def _tidy(self, execution: ExecutionId, live: LiveExecution) -> bool:
        """Have what is too old removed from a store, once after each part; whether there is nothing more to do."""
        note = await asyncio.to_thread(read_note, live.directory.path)
        if note is None or not note.in_store or note.number <= self._tidied.get(execution, 0):
            return True
        try:
            async with self._turns[execution]:
                done = await self._bench.checkpoints.work().tidy(execution, note.number)
        except (MusterError, ExecutionError) as error:
            log.warning("parts of checkpoints stay in a store", extra={"execution": execution, "cause": str(error)})
            done = True  # the next part has it tried again
        if done:
            self._tidied[execution] = note.number
        return done

    async def _store(self, execution: ExecutionId, live: LiveExecution, *, everything: bool) -> None:
        async with self._turns[execution]:
            note = await asyncio.to_thread(read_note, live.directory.path)
            if note is None:
                return
            found = await asyncio.to_thread(looks, live.directory.checkpoint, note.done)
            note = note.forgetting({look.name for look in found})
            for look in found:
                known = note.seen.get(look.name)
                new = known is None or known.state != look.state
                if new and (everything or look.finished(note.settle, self._clock())):
                    note = await self._store_one(execution, live, note, look)

    async def _store_one(
        self, execution: ExecutionId, live: LiveExecution, note: CheckpointNote, look: CheckpointLook
    ) -> CheckpointNote:
        key = (execution, look.name)
        state, at = self._refused.get(key, ("", 0.0))
        if state == look.state and self._clock() - at < PART_AGAIN:
            return note
        try:
            owner = await asyncio.to_thread(_owner, live) if live.kind is RuntimeKind.PROCESS else None
            part = await self._bench.checkpoints.work().store(execution, live.directory.checkpoint, look, owner)
            after = note.stored(replace(part, number=note.number + 1), look.state)
            await asyncio.to_thread(write_note, live.directory.path, after)
        except UnavailableError:
            raise
        except (MusterError, OSError) as error:
            self._refused[key] = (look.state, self._clock())
            log.warning("a checkpoint is not stored", extra={"execution": execution, "cause": str(error)})
            after = note.with_trouble(f"{look.name}: {error}")
            with suppress(OSError):  # the disk itself may be the trouble
                await asyncio.to_thread(write_note, live.directory.path, after)
        else:
            told = {"execution": execution, "checkpoint": look.name, "files": part.files, "bytes": part.bytes}
            log.info("a part of a checkpoint is stored", extra=told)
        self._tell(execution, after.told)
        return after

    def _tell(self, execution: ExecutionId, told: ToldCheckpoints) -> None:
        told = replace(told, storing=execution in self._ending)
        self._bench.inbox.put(CheckpointsSeen(execution=execution, checkpoints=told))


def _owner(live: LiveExecution) -> int | None:
    """The user of a process: the one to whom the directory was given."""
    with suppress(OSError):
        return live.directory.outputs.stat().st_uid
    return None
