"""How an execution ends: its exit, why it may have failed, what it leaves, its log."""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from agent.core.events import Exited, Fenced, GpusBusy, LogCompleted, OutputsSeen
from agent.core.launching.main_program import SETUP_FAILED
from agent.data.outputs import left_something
from agent.executions.layout import ExecutionDirectory
from agent.fencing.deadlines import why_fenced
from agent.loop.checkpoints import CheckpointWatch
from agent.loop.disk import VolumeWatch
from agent.loop.failures import failed
from agent.loop.live_execution import LiveExecution
from agent.loop.retry import insist
from agent.loop.saving.live import LiveOutputWatch
from agent.loop.saving.outputs import place_of, store_outputs
from agent.loop.uses import UseWatch
from agent.loop.workbench import OngoingWork, Workbench, ended
from agent.runtimes.runtime import Sandbox
from muster.domain.data.outputs import STORING_OUTPUTS
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError

log = logging.getLogger(__name__)

TAIL_LINES = 20
"""Last lines that go into the message of a failure."""
TAIL_PATIENCE, FAULT_PATIENCE = 0.1, 0.2
"""Seconds that the report of a failed exit, and with it the end of its gang, waits for last lines and GPU faults."""


class ExecutionWatches(NamedTuple):
    """What looks at executions while they run."""

    uses: UseWatch
    saves: CheckpointWatch
    disk: VolumeWatch
    outputs: LiveOutputWatch


class Exits:
    """Waits for the ends of executions."""

    def __init__(self, bench: Workbench, work: OngoingWork, watches: ExecutionWatches) -> None:
        """`watches`: what looks at executions while they run."""
        self._bench = bench
        self._work = work
        self._watches = watches
        self._saves = watches.saves

    def await_exit(self, execution: ExecutionId) -> None:
        """Tell when user code has ended, and see to what comes after that."""
        live = self._bench.live[execution]
        assert live.sandbox is not None
        self._work.watch(execution, self._follow(execution, live, live.sandbox))
        for watch in self._watches:
            watch.begin(execution)

    def end_log(self, execution: ExecutionId) -> None:
        """Close the log of an execution that never ran; one that never had a directory never printed."""
        live = self._bench.live.get(execution)
        if live is not None:
            self._work.watch(execution, live.spool.end())
        else:
            self._bench.inbox.put(LogCompleted(execution=execution))

    async def _follow(self, execution: ExecutionId, live: LiveExecution, sandbox: Sandbox) -> None:
        """The story of an end, step by step."""
        try:
            try:
                exit_ = await sandbox.exited()
            finally:
                live.user_code_ended()
        except ExecutionError as error:
            stores = self._begin_storing(execution, live)
            self._bench.inbox.put(await failed(self._bench, execution, error))
            await self._vacate(execution, sandbox)
            await self._saves.parts.finish(execution, live, well=False)
            await store_outputs(self._bench, execution, live) if stores else None
            return
        ended_as = Exited(execution=execution, exit=exit_)
        if exit_.code != 0:
            tail = await self._explained(execution, live, sandbox)
            in_setup = await asyncio.to_thread(_took_setup_failure, live.directory)
            ended_as = replace(ended_as, log_tail=tail, in_setup=in_setup)
        stores = await self._tell(sandbox, ended_as, live)
        await sandbox.drained()
        await self._leave(execution, sandbox)
        await self._complete_log(execution, live)
        await self._bench.secrets.clear(execution)
        await self._saves.parts.finish(execution, live, well=exit_.code == 0)
        await store_outputs(self._bench, execution, live) if stores else None

    async def _explained(self, execution: ExecutionId, live: LiveExecution, sandbox: Sandbox) -> tuple[str, ...]:
        """The last lines of a failed one, once whatever may explain its end is known."""
        await _within(TAIL_PATIENCE, sandbox.drained())  # something that outlives user code may hold its output
        await _within(FAULT_PATIENCE, self._bench.catch_up_on_faults())
        tail = live.spool.tail(TAIL_LINES)
        await self._hear_killer(execution, live)
        return tail

    async def _hear_killer(self, execution: ExecutionId, live: LiveExecution) -> None:
        """Say so where the killer killed it: it did not end by itself."""
        message = await asyncio.to_thread(why_fenced, live.directory.path)
        if message:
            self._bench.inbox.put(Fenced(execution=execution, grace=timedelta(0), message=message))

    async def _tell(self, sandbox: Sandbox, ended_as: Exited, live: LiveExecution) -> bool:
        """Report the end, and what was saved before; one that was told to stop has ended when all of it has.

        Whether it has left something that is to be stored.
        """
        await ended(self._work.under_way(ended_as.execution))
        self._saves.look(ended_as.execution)
        if (busy := self._bench.busy.of(ended_as.execution)) is not None:
            self._bench.inbox.put(GpusBusy(execution=ended_as.execution, milliseconds=busy))
        self._bench.held.leave(ended_as.execution, vacant=sandbox.vacant)
        stores = self._begin_storing(ended_as.execution, live)
        self._bench.inbox.put(ended_as)
        return stores

    def _begin_storing(self, execution: ExecutionId, live: LiveExecution) -> bool:
        """Say that it has left something, if it has; its end, which is told next, then brings its job to wait."""
        self._saves.parts.announce(execution, live)
        stores = left_something(live.directory.outputs) or place_of(live).has_note
        if stores:
            self._bench.inbox.put(OutputsSeen(execution=execution, outputs=STORING_OUTPUTS))
        return stores

    async def _leave(self, execution: ExecutionId, sandbox: Sandbox) -> None:
        """Have its ports and GPUs for the next one; the log is not to wait for what cannot be killed."""
        if sandbox.vacant:
            self._bench.held.vacate(execution)
        else:
            self._work.watch(execution, self._vacate(execution, sandbox))

    async def _vacate(self, execution: ExecutionId, sandbox: Sandbox) -> None:
        """End what is left of it, so that the next one can have what it had."""
        await insist(execution, sandbox.vacate)
        self._bench.held.vacate(execution)

    async def _complete_log(self, execution: ExecutionId, live: LiveExecution) -> None:
        """Close its log; of an empty one there is nothing to carry, nor to be told that it has arrived."""
        await live.spool.end()
        if not live.spool.size:
            self._bench.logs.forget(execution)
            self._bench.inbox.put(LogCompleted(execution=execution))


async def _within(seconds: float, wait: Awaitable[None]) -> None:
    """Wait for something, but not longer than this."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wait


def _took_setup_failure(directory: ExecutionDirectory) -> bool:
    """Whether user code ended because its setup failed; what says so is removed from among its outputs."""
    mark = directory.outputs / SETUP_FAILED
    with suppress(OSError):
        mark.unlink()
        return True
    return False
