"""Looks at executions that may not go unused for ever, and tells the core when one was used."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from agent.core.events import Used
from agent.core.idle import UseSample, WatchedExecution, busiest, is_unknown, used_at, watched
from agent.core.local import LocalState
from agent.core.step import AgentState
from agent.loop.workbench import OngoingWork, Workbench
from muster.domain.ids import ExecutionId
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
        while is_unknown(self._state.ledger, execution):
            await asyncio.sleep(ASKED_EVERY)  # noqa: ASYNC110 - a plan brings it, and nobody is told of plans
        before: UseSample | None = None
        while True:
            wanted = watched(self._state.ledger, execution)
            if wanted is not None:
                sample = await self._sample(execution, wanted)
                at = used_at(before, sample)
                if at is not None:
                    self._bench.inbox.put(Used(execution=execution, at=at))
                before = sample
            elif not self._is_about_to_run(execution):
                return
            await asyncio.sleep(ASKED_EVERY if wanted is None else use_told_every(wanted.limit).total_seconds())

    def _is_about_to_run(self, execution: ExecutionId) -> bool:
        """Whether an execution is being started, which the core hears of a moment later."""
        local = self._state.ledger.get(execution)
        assignment = None if local is None else local.wanted.assignment
        starting = local is not None and local.phase is LocalState.STARTING
        return starting and assignment is not None and assignment.idle is not None

    async def _sample(self, execution: ExecutionId, wanted: WatchedExecution) -> UseSample:
        """What is seen of it now; its CPUs are looked at only where its GPUs do not tell."""
        percent = busiest(wanted.gpus, await self._bench.gpu_use()) if wanted.gpus else None
        sample = partial(
            UseSample,
            at=datetime.now(UTC),
            seconds=self._clock(),
            attached_at=self._bench.usage.last(execution),
            gpu_percent=percent,
        )
        return sample() if percent is not None else sample(cpu_seconds=await self._cpu_seconds(execution))

    async def _cpu_seconds(self, execution: ExecutionId) -> float | None:
        live = self._bench.live.get(execution)
        if live is None or live.sandbox is None:
            return None
        try:
            return await live.sandbox.cpu_seconds()
        except (ExecutionError, OSError):
            return None  # its engine is away, or it is just ending; others tell of that
