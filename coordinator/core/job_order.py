"""Jobs in the order in which they were submitted, so that a page of a long list costs no more than one of a short."""

from bisect import bisect_left, insort
from collections.abc import Iterator

from coordinator.core.records import Job
from muster.domain.ids import JobId


class JobOrder:
    """Ids of jobs by sequence."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, JobId]] = []

    def add(self, job: Job) -> None:
        """Have a job among them; it must not be."""
        insort(self._entries, (job.sequence, job.id))

    def remove(self, job: Job) -> None:
        """Have a job among them no longer; it must be."""
        del self._entries[bisect_left(self._entries, (job.sequence, job.id))]

    def newest_first(self, before: int | None = None) -> Iterator[JobId]:
        """From the newest on, or from the newest below this sequence number."""
        place = len(self._entries) if before is None else bisect_left(self._entries, (before, JobId("")))
        return (self._entries[number][1] for number in range(place - 1, -1, -1))
