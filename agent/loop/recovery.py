"""The start of a loop: what a former life of the agent left is taken over, or cleared away."""

import asyncio
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from datetime import timedelta

from agent.core.events import Fenced, Recovered, StoppingFound
from agent.executions.layout import ExecutionDirectory
from agent.executions.notices import given_notice
from agent.executions.record import is_damaged, noted
from agent.fencing.deadlines import why_fenced
from agent.loop.live_execution import LiveExecution
from agent.loop.workbench import Workbench
from agent.runtimes.runtime import Sandbox
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import RuntimeKind

NO_TERMS = (
    "its record (execution.json) on the node is damaged, so nobody knew how long it may run without the coordinator"
)


async def recovered(bench: Workbench, away: Collection[RuntimeKind]) -> AsyncIterator[Recovered]:
    """What is left, execution by execution.

    What a runtime that is away has started counts as running; the rest of it is cleared away when it is back.
    """
    await asyncio.to_thread(bench.directories.begin)
    for runtime in bench.runtimes.values():
        for sandbox, spool, started in await runtime.recover(bench.directories.path):
            spool.limit, directory = bench.log_limit, bench.directories.of(sandbox.execution)
            bench.secrets.adopt(sandbox.execution, started=started)
            bench.live[sandbox.execution] = LiveExecution(runtime.kind, directory, spool, sandbox, started)
            yield await _adopt(bench, directory, sandbox, started=started)
    await asyncio.to_thread(bench.secrets.sweep)
    if not away:
        await asyncio.to_thread(_sweep, bench)


async def clear_leftovers(bench: Workbench, kind: RuntimeKind) -> None:
    """Remove what a runtime that was away at the start still has: the coordinator was told that it is gone."""
    for sandbox, spool, _ in await bench.runtimes[kind].recover(bench.directories.path):
        if sandbox.execution not in bench.live:
            await sandbox.remove()
            spool.close()
            await asyncio.to_thread(bench.directories.clear, bench.directories.of(sandbox.execution))


async def _adopt(bench: Workbench, directory: ExecutionDirectory, sandbox: Sandbox, *, started: bool) -> Recovered:
    """What is known of an execution of an earlier agent; its ports are leased to it again while it runs."""
    ended = sandbox.ended  # before the killer's word is looked for, which comes before the end that it brings
    record, fenced = await asyncio.to_thread(lambda: (noted(directory), why_fenced(directory.path)))
    found = Recovered(execution=sandbox.execution, started=started, ended=ended, fenced=fenced)
    if started and not ended and (notice := await asyncio.to_thread(given_notice, directory)) is not None:
        bench.inbox.put(StoppingFound(execution=found.execution, notice=notice))
    if record is None:
        if await asyncio.to_thread(is_damaged, directory) and started and not ended:
            bench.inbox.put(Fenced(execution=found.execution, grace=timedelta(0), message=NO_TERMS))
        return found
    bench.held.adopt(found.execution, record.ports, published=record.published)
    if ended or not started:
        bench.held.leave(found.execution, vacant=sandbox.vacant or not started)
    terms, started_at = record.terms, record.started_at
    return replace(
        found,
        address=record.address,
        ports=record.ports,
        started_at=started_at,
        terms=terms,
        gpu_busy_ms=record.gpu_busy_ms,
    )


def _sweep(bench: Workbench) -> None:
    """Clear directories that belong to nobody any more."""
    for path in bench.directories.path.iterdir():
        execution = ExecutionId(path.name)
        if execution not in bench.live:
            bench.directories.clear(bench.directories.of(execution))
    bench.directories.volumes.sweep(bench.directories.path, bench.live)
