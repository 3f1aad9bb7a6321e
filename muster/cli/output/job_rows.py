"""Jobs as rows of a table, in plain words."""

from datetime import datetime

from muster.cli.output.job_sentences import ran_text
from muster.cli.output.plain.columns import Column
from muster.cli.output.units import cpus_text, in_local_time, labels_text, span_text, time_text
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.placing.portion import WHOLE_GPU
from muster.domain.jobs.view import JobView

COLUMNS = (
    Column("ID"),
    Column("NAME", least=12),
    Column("PHASE"),
    Column("OWNER", spare=3, least=8),
    Column("PROJECT", spare=5, least=8),
    Column("WORKERS", right=True, spare=2),
    Column("GPUS", right=True, spare=6),
    Column("AGE", right=True, spare=1),
    Column("RAN", right=True, spare=4),
    Column("SUMMARY", least=20),
)
MORE_COLUMNS = (
    Column("ATTEMPT", right=True),
    Column("PRIORITY", right=True),
    Column("LABELS"),
    Column("SUBMITTED"),
    Column("ENDED"),
)
"""Columns of `-o wide`, after the others."""
PHASE = 2
"""The place of the phase."""


def job_row(job: JobView, now: datetime, *, wide: bool = False) -> tuple[str, ...]:
    """One line of the list of jobs."""
    row = (
        job.id,
        job.spec.name,
        job.phase.value,
        job.owner or "-",
        job.spec.project,
        str(job.spec.size),
        gpus_wanted(job.spec),
        span_text(now - job.submitted_at),
        ran_text(job, job.ended_at or now) or "-",
        in_local_time(job.summary, now),
    )
    if not wide:
        return row
    return (
        *row,
        str(job.attempts[-1].number if job.attempts else 1),
        str(job.spec.priority),
        labels_text(job.spec.labels) or "-",
        time_text(job.submitted_at),
        time_text(job.ended_at) or "-",
    )


def gpus_wanted(spec: JobSpec) -> str:
    """GPUs of all executions together; portions as they count in quotas."""
    thousandths = 0
    for role in spec.roles:
        portion = role.resources.portion
        thousandths += role.count * role.resources.gpus * (WHOLE_GPU if portion is None else portion.thousandths)
    return cpus_text(thousandths) if thousandths else "-"
