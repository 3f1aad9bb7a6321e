"""How much of a job's past is at hand; executions of other attempts are in the store alone."""

from collections.abc import Iterable, Iterator

from coordinator.core.records import Execution, Job, Record
from muster.domain.ids import JobId

WHOLE_ATTEMPTS = 20
"""Newest attempts of a job of which every execution is kept in memory and told to clients."""
WHOLE_EXECUTIONS = 20_000
"""Executions that these attempts have at most; the newest two are whole however large they are."""


def first_whole(job: Job) -> int:
    """The oldest of the newest attempts that are at hand."""
    return max(1, job.attempt + 1 - max(2, min(WHOLE_ATTEMPTS, WHOLE_EXECUTIONS // job.spec.size)))


def is_whole(job: Job, attempt: int) -> bool:
    """Whether the executions of an attempt are at hand."""
    return attempt == 1 or attempt >= first_whole(job)


def remembered(records: Iterable[Record]) -> Iterator[Record]:
    """Records that are kept in memory; jobs come before their executions."""
    jobs: dict[JobId, Job] = {}
    for record in records:
        if isinstance(record, Job):
            jobs[record.id] = record
        if not isinstance(record, Execution) or is_whole(jobs[record.job], record.attempt):
            yield record
