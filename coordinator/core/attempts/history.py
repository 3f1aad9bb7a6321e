"""How much of a job's past is at hand, how much is in the store alone, and how much is dropped."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from coordinator.core.records import Execution, Job, Record
from muster.domain.ids import JobId

WHOLE_ATTEMPTS = 20
"""Newest attempts of a job of which every execution is kept in memory and told to clients."""
WHOLE_EXECUTIONS = 20_000
"""Executions that these attempts have at most; the newest two are whole however large they are."""
DROPPED_AT_ONCE = 2
"""Attempts whose executions one new attempt drops: the one that is too many, and one that an older version left."""


def first_whole(job: Job) -> int:
    """The oldest of the newest attempts that are at hand."""
    return max(1, job.attempt + 1 - max(2, min(WHOLE_ATTEMPTS, WHOLE_EXECUTIONS // job.spec.size)))


def is_whole(job: Job, attempt: int) -> bool:
    """Whether the executions of an attempt are at hand."""
    return attempt == 1 or attempt >= first_whole(job)


def in_store_alone(job: Job, dropped: Collection[int]) -> Iterator[int]:
    """Attempts whose executions only the store has."""
    return (number for number in range(2, first_whole(job)) if number not in dropped)


def too_many(job: Job, dropped: Collection[int], most: int) -> Iterator[int]:
    """Attempts whose executions the store drops now, the oldest first, so that ended ones have at most so many.

    Those of the first attempt stay, and all that are in memory.
    """
    kept_from = min(first_whole(job), job.attempt + 1 - most // job.spec.size)
    return islice((number for number in range(2, kept_from) if number not in dropped), DROPPED_AT_ONCE)


def remembered(records: Iterable[Record]) -> Iterator[Record]:
    """Records that are kept in memory; jobs come before their executions."""
    jobs: dict[JobId, Job] = {}
    for record in records:
        if isinstance(record, Job):
            jobs[record.id] = record
        if not isinstance(record, Execution) or is_whole(jobs[record.job], record.attempt):
            yield record
