"""Has outputs stored while user code runs, once nobody may write to them any more."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from agent.core.events import OutputsSeen
from agent.core.local import ALIVE
from agent.core.step import AgentState
from agent.data.outputs import left_something
from agent.loop.live_execution import LiveExecution
from agent.loop.saving.outputs import place_of
from agent.loop.workbench import OngoingWork, Workbench
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError

log = logging.getLogger(__name__)

OUTPUTS_LOOK = 2.0
"""Seconds between two looks into an outputs directory whose files are stored while user code runs, at the least."""
OUTPUTS_LOOK_PAUSE = 50
"""How many times as long as a look that found nothing new took the pause after it is, at the least."""
OUTPUTS_AGAIN = 300.0
"""Seconds until outputs that could not be stored while user code runs are tried again."""


class LiveOutputWatch:
    """Watches the outputs directories of one node's executions."""

    def __init__(
        self,
        bench: Workbench,
        state: AgentState,
        work: OngoingWork,
        every: float = OUTPUTS_LOOK,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch nothing yet; `state` is only read. `every`: seconds between two looks."""
        self._bench = bench
        self._state = state
        self._work = work
        self._every = every
        self._clock = clock

    def begin(self, execution: ExecutionId) -> None:
        """Watch an execution that was started or found, until it has ended, where its job wants that."""
        local, live = self._state.ledger.get(execution), self._bench.live.get(execution)
        assignment = None if local is None else local.wanted.assignment
        if live is not None and (assignment is None or assignment.role.outputs.are_live):
            self._work.watch(execution, self._watch(execution, live))

    async def _watch(self, execution: ExecutionId, live: LiveExecution) -> None:
        """Look again and again; what an agent finds at its start is known once the coordinator has sent a plan."""
        told = await asyncio.to_thread(self._bench.outputs.stored_live, place_of(live))
        if told is not None:
            self._tell(execution, told)
        while (local := self._state.ledger.get(execution)) is not None and local.phase in ALIVE:
            pause, assignment = self._every, local.wanted.assignment
            if assignment is not None:
                terms = assignment.role.outputs
                if not terms.are_live:
                    return
                if left_something(live.directory.outputs):
                    told, pause = await self._look(execution, live, terms, told)
            await asyncio.sleep(pause)

    async def _look(
        self, execution: ExecutionId, live: LiveExecution, terms: OutputTerms, told: ExecutionOutputs | None
    ) -> tuple[ExecutionOutputs | None, float]:
        """Store what is new; what was told of it last, and how long nobody need look again."""
        begun, pause = self._clock(), self._every
        try:
            stored = await self._bench.outputs.store_live(execution, place_of(live), terms)
        except UnavailableError as error:
            log.info("outputs are not stored yet", extra={"execution": execution, "cause": str(error)})
            return told, pause
        except (MusterError, ExecutionError, OSError) as error:
            log.warning("outputs are not stored yet", extra={"execution": execution, "cause": str(error)})
            known = ExecutionOutputs(stage=OutputsStage.LIVE) if told is None else told
            stored, pause = replace(known, why=str(error)), OUTPUTS_AGAIN
        if stored is not None and stored != told:
            self._tell(execution, stored)
            return stored, pause
        return stored, max(pause, (self._clock() - begun) * OUTPUTS_LOOK_PAUSE)

    def _tell(self, execution: ExecutionId, stored: ExecutionOutputs) -> None:
        self._bench.inbox.put(OutputsSeen(execution=execution, outputs=stored))
