"""Looks at what the executions that run here use, all beside each other."""

import asyncio
from collections.abc import Mapping

from agent.core.local import LocalState
from agent.core.step import AgentState
from agent.loop.workbench import Workbench
from agent.runtimes.runtime import Sandbox
from agent.telemetry.cgroups import CgroupCounts
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError
from muster.domain.telemetry.sample import MAX_SAMPLED

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


def _runs(state: AgentState, execution: ExecutionId) -> bool:
    local = state.ledger.get(execution)
    return local is not None and local.phase is LocalState.RUNNING
