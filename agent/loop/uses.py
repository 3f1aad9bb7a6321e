"""Looks at executions that may not go unused for ever, and tells the core when one was used."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from agent.core.events import Used
from agent.core.local import LocalState
from agent.core.step import AgentState
from agent.core.watching.idle import UseSample, busiest, used_at
from agent.loop.workbench import OngoingWork, Workbench
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.interactive import SHORTEST_IDLE, use_told_every

ASKED_EVERY = use_told_every(SHORTEST_IDLE).total_seconds()
"""Seconds between looks at whether the coordinator has told what is to be watched, once the agent was started anew."""


class UseWatch:
    """Watches the executions of one node, each as often as its job's limit wants it."""

    def __init__(
        self, bench: Workbench, state: AgentState, work: OngoingWork, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Watch nothing yet; `state` is only read."""
        self._bench = bench
        self._state = state
        self._work = work
        self._clock = clock

    def begin(self, execution: ExecutionId) -> None:
        """Watch an execution that was started or found, until it has ended; nothing comes of it where nobody asks."""
        local = self._state.ledger.get(execution)
        assignment = None if local is None else local.wanted.assignment
        if assignment is None or assignment.idle is not None:
            self._work.watch(execution, self._watch(execution))

    async def _watch(self, execution: ExecutionId) -> None:
        before: UseSample | None = None
        while self._may_be_wanted(execution):
            local = self._state.ledger.get(execution)
            limit = None if local is None else local.idle_limit
            if limit is not None:
                sample = await self._sample(execution, self._state.ledger.gpus(execution))
                at = used_at(before, sample)
                if at is not None:
                    self._bench.inbox.put(Used(execution=execution, at=at))
                before = sample
            await asyncio.sleep(ASKED_EVERY if limit is None else use_told_every(limit).total_seconds())

    def _may_be_wanted(self, execution: ExecutionId) -> bool:
        """Whether it runs or is being started, and somebody may want to hear of use.

        What an agent finds at its start is known better once the coordinator has sent a plan.
        """
        local = self._state.ledger.get(execution)
        if local is None or local.phase not in {LocalState.STARTING, LocalState.RUNNING}:
            return False
        assignment = local.wanted.assignment
        return assignment is None or assignment.idle is not None

    async def _sample(self, execution: ExecutionId, gpus: Sequence[GpuUuid]) -> UseSample:
        """What is seen of it now; its CPUs are looked at only where its GPUs do not tell."""
        percent = busiest(gpus, await self._bench.gpu_use()) if gpus else None
        return UseSample(
            at=datetime.now(UTC),
            seconds=self._clock(),
            attached_at=self._bench.usage.last(execution),
            gpu_percent=percent,
            cpu_seconds=await self._cpu_seconds(execution) if percent is None else None,
        )

    async def _cpu_seconds(self, execution: ExecutionId) -> float | None:
        live = self._bench.live.get(execution)
        if live is None or live.sandbox is None:
            return None
        try:
            return await live.sandbox.cpu_seconds()
        except (ExecutionError, OSError):
            return None  # its engine is away, or it is just ending; others tell of that
