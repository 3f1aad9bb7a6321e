"""A job that prepares, as a table that is drawn again and again; elsewhere it is told in lines: `job_sentences`."""

from datetime import datetime

from rich.console import Group, RenderableType

from muster.cli.output.executions import URGENCY
from muster.cli.output.job_sentences import arrived, executions_of
from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import joined, listing, shown, word
from muster.cli.output.units import span_text
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView

_SHOWN = 16
"""Executions in the live table; the slowest are shown."""


def progress(job: JobView, now: datetime) -> RenderableType:
    """What the job waits for: who is doing what, and who has checked in."""
    head = joined(f"{job.spec.name} ({job.id}) ", word(job.phase), f"  {span_text(now - job.submitted_at)}")
    executions = executions_of(job)
    if job.phase in {JobPhase.WAITING, JobPhase.QUEUED} or not executions:
        return Group(head, shown(f"  {job.summary}", "dim"))
    head.append(f"  checked in {arrived(executions)}/{len(executions)}")
    slowest = sorted(executions, key=lambda execution: (URGENCY.index(execution.state), execution.rank))[:_SHOWN]
    rows = ((f"  {one.rank}", one.node or "-", word(one.state), one.detail) for one in slowest)
    parts: list[RenderableType] = [
        head,
        listing(("  RANK", Column("NODE", least=10), "STATE", Column("DOING", least=20)), rows),
    ]
    if len(executions) > _SHOWN:
        parts.append(shown(f"  and {len(executions) - _SHOWN} more", "dim"))
    return Group(*parts)
