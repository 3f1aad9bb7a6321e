"""Jobs as rows of a table, in plain words."""

from datetime import datetime

from muster.cli.output.job_sentences import ran_text
from muster.cli.output.units import span_text
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.view import JobView

HEADERS = ("ID", "NAME", "PHASE", "OWNER", "PROJECT", ">WORKERS", ">GPUS", ">AGE", ">RAN", "SUMMARY")
"""What begins with > goes right."""
PHASE = HEADERS.index("PHASE")


def job_row(job: JobView, now: datetime) -> tuple[str, ...]:
    """One line of the list of jobs."""
    return (
        job.id,
        job.spec.name,
        job.phase.value,
        job.owner or "-",
        job.spec.project,
        str(job.spec.size),
        str(gpus_wanted(job.spec) or "-"),
        span_text(now - job.submitted_at),
        ran_text(job, job.ended_at or now) or "-",
        job.summary,
    )


def gpus_wanted(spec: JobSpec) -> int:
    """GPUs of all executions together."""
    return sum(role.count * role.resources.gpus for role in spec.roles)
