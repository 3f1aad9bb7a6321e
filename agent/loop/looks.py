"""Looks at what the executions that run here use, all beside each other."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from agent.core.events import GpusBusy, PortionOutgrown
from agent.core.local import LocalState
from agent.core.step import AgentState
from agent.core.watching.gpu_memory import GpuMemoryUse
from agent.executions.record import note_busy
from agent.loop.workbench import Workbench
from agent.runtimes.runtime import Sandbox
from agent.telemetry.busy import GpuHolder
from agent.telemetry.cgroups import CgroupCounts
from muster.domain.fleet.node import GpuProcess
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.placing.portion import WHOLE_GPU, GpuShare
from muster.domain.telemetry.sample import MAX_SAMPLED, GpuUse

log = logging.getLogger(__name__)

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
    await _look_at_portions(bench, state)
    return {gpu: seen[gpu] for gpu in gpus if gpu in seen}


async def tell_busy(bench: Workbench, execution: ExecutionId, milliseconds: int) -> None:
    """Tell the core how long the GPUs of an execution were busy, and note it for the next agent."""
    bench.inbox.put(GpusBusy(execution=execution, milliseconds=milliseconds))
    with suppress(OSError):  # the disk is full, or it is just being cleared away
        await asyncio.to_thread(note_busy, bench.directories.of(execution), milliseconds)


async def _look_at_portions(bench: Workbench, state: AgentState) -> None:
    """Tell the core of executions that use more GPU memory than their portion; asks nothing where GPUs are whole."""
    sharing = {each: share for each in state.ledger.live() if (share := _share(state, each)) is not None}
    bench.portions.keep(tuple(sharing))
    if not sharing:
        return
    processes = await bench.gpu_processes()
    for execution, share in sharing.items():
        uses = await _memory_used(bench, execution, processes, state.ledger.gpus(execution))
        told = bench.portions.look(execution, uses, share.memory, time.monotonic())
        if told:
            log.warning("more GPU memory than its portion", extra={"execution": execution, "told": told})
            bench.inbox.put(PortionOutgrown(execution=execution, message=told))


async def _memory_used(
    bench: Workbench,
    execution: ExecutionId,
    processes: Mapping[GpuUuid, Sequence[GpuProcess]],
    gpus: Sequence[GpuUuid],
) -> Sequence[GpuMemoryUse]:
    """What its own processes use of each of its GPUs; nothing where that cannot be told."""
    live = bench.live.get(execution)
    found = {gpu: [each for each in processes.get(gpu, ()) if each.memory is not None] for gpu in gpus}
    pids = {each.pid for on_gpu in found.values() for each in on_gpu}
    if live is None or live.sandbox is None or not pids:
        return ()
    try:
        own = await live.sandbox.own(pids)
    except (ExecutionError, OSError):
        return ()  # its engine is away, or it is just ending; others tell of that
    mine = {gpu: [each.memory or 0 for each in on_gpu if each.pid in own] for gpu, on_gpu in found.items()}
    return [GpuMemoryUse(gpu=gpu, processes=len(each), memory=sum(each)) for gpu, each in mine.items()]


def _share(state: AgentState, execution: ExecutionId) -> GpuShare | None:
    """What an execution has of each of its GPUs, if it is to keep to that; None also once it was told of."""
    local = state.ledger.get(execution)
    if local is None or local.phase is not LocalState.RUNNING or local.over_portion:
        return None
    return None if local.wanted.assignment is None else local.wanted.assignment.gpu_share


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
