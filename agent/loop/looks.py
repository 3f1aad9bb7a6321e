"""Looks at what the executions that run here use, all beside each other."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from agent.core.events import GpusBusy
from agent.core.local import LocalState
from agent.core.step import AgentState
from agent.executions.record import note_busy
from agent.loop.workbench import Workbench
from agent.runtimes.runtime import Sandbox
from agent.telemetry.busy import GpuHolder
from agent.telemetry.cgroups import CgroupCounts
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.placing.portion import WHOLE_GPU
from muster.domain.telemetry.sample import MAX_SAMPLED, GpuUse

LOOK_LIMIT = 1.0
"""Seconds for looks at all executions together; what is not known by then is left out."""


async def counts_of_running(bench: Workbench, state: AgentState) -> Mapping[ExecutionId, CgroupCounts]:
    """What the kernel counts of each execution that runs; without those of which nothing can be known now."""
    found: dict[ExecutionId, CgroupCounts] = {}

    async def look(execution: ExecutionId, sandbox: Sandbox) -> None:
        try:
            found[execution] = await sandbox.counts()
        except (ExecutionError, OSError):
            return  # its engine is away, or it is just ending; others tell of that

    running = [each for each in state.ledger.live() if _runs(state, each)][:MAX_SAMPLED]
    try:
        async with asyncio.timeout(LOOK_LIMIT), asyncio.TaskGroup() as tasks:
            for each in running:
                live = bench.live.get(each)
                if live is not None and live.sandbox is not None:
                    tasks.create_task(look(each, live.sandbox), name=f"look at {each}")
    except TimeoutError:
        pass
    return found


async def use_of_gpus(bench: Workbench, state: AgentState, gpus: Sequence[GpuUuid]) -> Mapping[GpuUuid, GpuUse]:
    """What is seen of these GPUs; it counts as busy time of the executions that have them."""
    seen = await bench.gpu_use() if gpus else {}
    holders = (_holder(state, each) for each in state.ledger.live())
    for execution, milliseconds in bench.busy.look(seen, filter(None, holders), time.monotonic()):
        await tell_busy(bench, execution, milliseconds)
    return {gpu: seen[gpu] for gpu in gpus if gpu in seen}


async def tell_busy(bench: Workbench, execution: ExecutionId, milliseconds: int) -> None:
    """Tell the core how long the GPUs of an execution were busy, and note it for the next agent."""
    bench.inbox.put(GpusBusy(execution=execution, milliseconds=milliseconds))
    with suppress(OSError):  # the disk is full, or it is just being cleared away
        await asyncio.to_thread(note_busy, bench.directories.of(execution), milliseconds)


def _holder(state: AgentState, execution: ExecutionId) -> GpuHolder | None:
    local = state.ledger.get(execution)
    assignment = None if local is None else local.wanted.assignment
    if local is None or assignment is None or not assignment.gpus or local.phase not in _HAVING_RUN:
        return None
    share = WHOLE_GPU if assignment.gpu_share is None else assignment.gpu_share.thousandths
    return GpuHolder(execution, assignment.gpus, share, local.gpu_busy_ms)


_HAVING_RUN = frozenset({LocalState.RUNNING, LocalState.TERMINATING})


def _runs(state: AgentState, execution: ExecutionId) -> bool:
    local = state.ledger.get(execution)
    return local is not None and local.phase is LocalState.RUNNING
