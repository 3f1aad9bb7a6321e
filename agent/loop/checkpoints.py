"""Looks whether user code has told that a checkpoint is whole, and tells the core."""

import asyncio
from datetime import UTC, datetime
from functools import partial

from agent.core.events import Saved
from agent.core.local import ALIVE
from agent.core.step import AgentState
from agent.executions.status import last_checkpoint
from agent.loop.saving.parts import PartStoring
from agent.loop.workbench import OngoingWork, Workbench
from muster.domain.ids import ExecutionId

CHECKPOINT_LOOK = 30.0
"""Seconds between two looks: a checkpoint that is told later costs another job no more than a poorer choice."""


class CheckpointWatch:
    """Watches the status directories of one node's executions."""

    def __init__(self, bench: Workbench, state: AgentState, work: OngoingWork, every: float = CHECKPOINT_LOOK) -> None:
        """Watch nothing yet; `state` is only read. `every`: seconds between two looks."""
        self._bench = bench
        self._state = state
        self._work = work
        self._every = every
        self._told: dict[ExecutionId, datetime] = {}
        self.parts = PartStoring(bench)

    def begin(self, execution: ExecutionId) -> None:
        """Watch an execution that was started or found, until it has ended."""
        self._work.watch(execution, self._watch(execution))
        live = self._bench.live.get(execution)
        if live is not None:
            self._work.watch(execution, self.parts.watch(execution, live, partial(self._runs, execution)))

    def look(self, execution: ExecutionId) -> None:
        """Tell the core of a checkpoint that is newer than the last one that it was told of."""
        live = self._bench.live.get(execution)
        at = None if live is None else last_checkpoint(live.directory, datetime.now(UTC))
        if at is not None and at != self._told.get(execution):
            self._told[execution] = at
            self._bench.inbox.put(Saved(execution=execution, at=at))

    async def _watch(self, execution: ExecutionId) -> None:
        try:
            while self._runs(execution):
                self.look(execution)
                await asyncio.sleep(self._every)
        finally:
            self._told.pop(execution, None)

    def _runs(self, execution: ExecutionId) -> bool:
        local = self._state.ledger.get(execution)
        return local is not None and local.phase in ALIVE
