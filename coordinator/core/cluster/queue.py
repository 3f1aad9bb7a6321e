"""Jobs that wait for placement, in the order that scheduling asks for, and why a job did not fit when last tried."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from heapq import heappop, heappush
from typing import TypeAlias

from coordinator.core.cluster.lines import LineEntry, Lines, SortKey
from coordinator.core.placement.request_classes import RequestClass, RequestClasses
from coordinator.core.records import Attempt, Execution, Job
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.lifecycle import State

QueueOrder: TypeAlias = Callable[[Job], SortKey]
"""Gives a waiting job its place. It must tell the same for as long as the job waits."""


class Queue:
    """An index over executions: the jobs whose newest attempt is queued."""

    def __init__(self, jobs: Mapping[JobId, Job], attempts: Mapping[AttemptId, Attempt], order: QueueOrder) -> None:
        self._jobs = jobs
        self._attempts = attempts
        self._order = order
        self._line: list[LineEntry] = []
        self._classes = RequestClasses()
        self._refused: dict[JobId, str] = {}
        self._paused: dict[JobId, None] = {}
        self._wakes: list[tuple[datetime, JobId]] = []
        """A heap of the times at which pauses end; some of jobs that are not paused any more."""
        self.lines = Lines()
        """The jobs that may be placed now."""

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

    def wake(self, now: datetime) -> None:
        """Have jobs in their lines whose pause is over."""
        while self._wakes and self._wakes[0][0] <= now:
            _, job = heappop(self._wakes)
            if job not in self._paused or self._has_claim(job):
                continue
            not_before = self._not_before(job)
            if not_before is not None and not_before > now:
                heappush(self._wakes, (not_before, job))
            else:
                del self._paused[job]
                self._line_up(job)

    def changed(self, before: Execution | None, after: Execution | None) -> None:
        """Hear of an execution; rank 0 stands for its gang, as all of a gang leave the queue in one step."""
        execution = before if after is None else after
        assert execution is not None
        if execution.rank != 0:
            return
        waited = before is not None and before.state is State.QUEUED
        waits = after is not None and after.state is State.QUEUED
        if waits and not waited:
            self._join(execution.job)
        elif waited and not waits:
            self._leave(execution.job)

    def job_changed(self, before: Job | None, after: Job | None) -> None:
        """Hear of a job that is other than before: one that waits may have another place now."""
        if before is None or after is None or before.job_class is after.job_class:
            return
        entry = (self._order(before), before.id)
        place = bisect_left(self._line, entry)
        if place == len(self._line) or self._line[place] != entry:
            return
        del self._line[place]
        insort(self._line, self._entry(after.id))
        if after.id not in self._paused:
            self.lines.remove(entry, before.spec.project, self._classes[before.id])
            self._line_up(after.id)

    def attempt_changed(self, before: Attempt | None, after: Attempt | None) -> None:
        """Hear of an attempt: one that claims seats is in no line, as nothing else is looked for."""
        claimed = before is not None and before.claim is not None
        if after is None or claimed == (after.claim is not None) or not self.position(after.job):
            return
        if claimed:
            del self._paused[after.job]
            self._line_up(after.job)
        else:
            self.lines.remove(self._entry(after.job), self._jobs[after.job].spec.project, self._classes[after.job])
            self._paused[after.job] = None

    def _join(self, job: JobId) -> None:
        insort(self._line, self._entry(job))
        self._classes.add(self._jobs[job])
        not_before = self._not_before(job)
        if self._has_claim(job):
            self._paused[job] = None
        elif not_before is None:
            self._line_up(job)
        else:
            self._paused[job] = None
            heappush(self._wakes, (not_before, job))

    def _leave(self, job: JobId) -> None:
        entry = self._entry(job)
        del self._line[bisect_left(self._line, entry)]
        if job in self._paused:
            del self._paused[job]
        else:
            self.lines.remove(entry, self._jobs[job].spec.project, self._classes[job])
        self._classes.remove(job)
        self._refused.pop(job, None)

    def _line_up(self, job: JobId) -> None:
        self.lines.add(self._entry(job), self._jobs[job].spec.project, self._classes[job])

    def _has_claim(self, job: JobId) -> bool:
        return self._attempts[self._jobs[job].attempt_id].claim is not None

    def _not_before(self, job: JobId) -> datetime | None:
        """When the newest attempt may begin at the earliest."""
        return self._attempts[self._jobs[job].attempt_id].not_before

    def _entry(self, job: JobId) -> LineEntry:
        return (self._order(self._jobs[job]), job)
