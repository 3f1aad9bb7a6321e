"""A job that prepares: as a live table on a terminal, as a line for each change elsewhere."""

import re
from collections.abc import Iterator
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from muster.cli.render_tables import listing, word
from muster.cli.render_units import span_text
from muster.domain.lifecycle import JobPhase, State
from muster.domain.view import ExecutionView, JobView

_SHOWN = 16
"""Executions in the live table; the slowest are shown."""

_ORDER = (
    State.FAILED,
    State.LOST,
    State.QUEUED,
    State.PLACED,
    State.PREPARING,
    State.STOPPING,
    State.STOPPED,
    State.CHECKED_IN,
    State.ARMED,
    State.RUNNING,
    State.SUCCEEDED,
)
_NEWS = {State.PREPARING, State.CHECKED_IN, State.FAILED, State.LOST}
"""States of single executions that get a line; in the others the job's phase says enough."""
_HERE = {State.CHECKED_IN, State.ARMED, State.RUNNING, State.SUCCEEDED}


def progress(job: JobView, now: datetime) -> RenderableType:
    """What the job waits for: who is doing what, and who has checked in."""
    head = Text.assemble(f"{job.spec.name} ({job.id}) ", word(job.phase), f"  {span_text(now - job.submitted_at)}")
    executions = executions_of(job)
    if job.phase is JobPhase.QUEUED or not executions:
        return Group(head, Text(f"  {job.summary}", style="dim"))
    head.append(f"  checked in {_arrived(executions)}/{len(executions)}")
    slowest = sorted(executions, key=lambda execution: (_ORDER.index(execution.state), execution.rank))[:_SHOWN]
    rows = ((f"  {one.rank}", one.node or "-", word(one.state), one.detail) for one in slowest)
    parts: list[RenderableType] = [head, listing(("  RANK", "NODE", "STATE", "DOING"), rows)]
    if len(executions) > _SHOWN:
        parts.append(Text(f"  and {len(executions) - _SHOWN} more", style="dim"))
    return Group(*parts)


def changes(before: JobView | None, after: JobView) -> Iterator[str]:
    """A line for each thing that is different; a percentage that grows is not."""
    # The end of a job is told by its verdict.
    if (before is None or before.phase is not after.phase) and not after.phase.ended:
        yield f"{after.spec.name} ({after.id}) {after.phase}" + (f": {after.summary}" if after.summary else "")
    known = {} if before is None else {execution.id: execution for execution in executions_of(before)}
    executions = executions_of(after)
    for execution in executions:
        if execution.state in _NEWS and _told(execution) != _told(known.get(execution.id)):
            yield _line(execution)
    arrived = _arrived(executions)
    if executions and arrived != _arrived(tuple(known.values())) and after.phase is JobPhase.PREPARING:
        yield f"checked in {arrived}/{len(executions)}"


def executions_of(job: JobView) -> tuple[ExecutionView, ...]:
    """Those of the newest attempt, by rank."""
    return job.attempts[-1].executions if job.attempts else ()


def _arrived(executions: tuple[ExecutionView, ...]) -> int:
    return sum(execution.state in _HERE for execution in executions)


def _told(execution: ExecutionView | None) -> tuple[State, str] | None:
    return None if execution is None else (execution.state, re.sub(r"[\d.]+", "", execution.detail))


def _line(execution: ExecutionView) -> str:
    place = f" on {execution.node}" if execution.node else ""
    told = execution.failure.message if execution.failure else execution.detail
    doing = f": {told}" if told else ""
    return f"rank {execution.rank}{place} {execution.state.replace('_', ' ')}{doing}"
