"""Jobs that wait for placement, in the order that scheduling asks for, and why a job did not fit when last tried."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from coordinator.core.placement.request_classes import RequestClass, RequestClasses
from coordinator.core.records import Execution, Job
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import State

SortKey: TypeAlias = tuple[int, ...]
"""Where a job stands in the queue: the least is the head; no two jobs have the same."""

QueueOrder: TypeAlias = Callable[[Job], SortKey]
"""Gives a waiting job its place. It must tell the same for as long as the job waits."""


class Queue:
    """An index over executions: the jobs whose newest attempt is queued."""

    def __init__(self, jobs: Mapping[JobId, Job], order: QueueOrder) -> None:
        self._jobs = jobs
        self._order = order
        self._line: list[tuple[SortKey, JobId]] = []
        self._classes = RequestClasses()
        self._refused: dict[JobId, str] = {}

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Job]:
        """Waiting jobs, the head first."""
        return (self._jobs[job] for _, job in self._line)

    def position(self, job: JobId) -> int:
        """1 for the head of the queue; 0: the job does not wait."""
        entry = self._entry(job)
        place = bisect_left(self._line, entry)
        return place + 1 if place < len(self._line) and self._line[place] == entry else 0

    def request_class(self, job: JobId) -> RequestClass:
        """The request class of a job that waits."""
        return self._classes[job]

    @property
    def refused(self) -> Mapping[JobId, str]:
        """Why each waiting job that was tried did not fit the last time."""
        return self._refused

    def note_refusal(self, job: JobId, why: str) -> None:
        """Remember why a waiting job did not fit."""
        self._refused[job] = why

    def changed(self, before: Execution | None, after: Execution | None) -> None:
        """Hear of an execution; rank 0 stands for its gang, as all of a gang leave the queue in one step."""
        execution = before if after is None else after
        assert execution is not None
        if execution.rank != 0:
            return
        waited = before is not None and before.state is State.QUEUED
        waits = after is not None and after.state is State.QUEUED
        if waits and not waited:
            insort(self._line, self._entry(execution.job))
            self._classes.add(self._jobs[execution.job])
        elif waited and not waits:
            del self._line[bisect_left(self._line, self._entry(execution.job))]
            self._classes.remove(execution.job)
            self._refused.pop(execution.job, None)

    def _entry(self, job: JobId) -> tuple[SortKey, JobId]:
        return (self._order(self._jobs[job]), job)
