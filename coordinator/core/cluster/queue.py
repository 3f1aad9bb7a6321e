"""Jobs that wait for placement, in the order that scheduling asks for, and why a job did not fit when last tried."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import TypeAlias

from coordinator.core.cluster.lines import LineEntry, Lines, SortKey
from coordinator.core.placement.request_classes import RequestClass, RequestClasses
from coordinator.core.records import Attempt, Execution, Job
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.placing.pool_choice import open_pools

QueueOrder: TypeAlias = Callable[[Job], SortKey]
"""Gives a waiting job its place. It must tell the same for as long as the job waits."""


class Queue:
    """An index over executions: the jobs whose newest attempt is queued."""

    def __init__(
        self,
        jobs: Mapping[JobId, Job],
        attempts: Mapping[AttemptId, Attempt],
        order: QueueOrder,
        wake_at: Callable[[datetime], None],
    ) -> None:
        """`wake_at` has the queue looked at again at a time."""
        self._jobs = jobs
        self._attempts = attempts
        self._order = order
        self._wake_at = wake_at
        self._line: list[LineEntry] = []
        self._classes = RequestClasses()
        self._refused: dict[JobId, str] = {}
        self._paused: dict[JobId, None] = {}
        self._wakes: list[tuple[datetime, JobId]] = []
        """A heap of the times at which pauses end; some of jobs that are not paused any more."""
        self._queued_at: dict[JobId, datetime] = {}
        """Since when each job is in the queue."""
        self._openings: list[tuple[datetime, JobId]] = []
        """A heap of the times at which pools open for jobs; some of jobs that do not wait any more."""
        self.lines = Lines()
        """The jobs that may be placed now."""

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Job]:
        """Waiting jobs, the head first."""
        return (self._jobs[job] for _, job in self._line)

    def position(self, job: JobId) -> int:
        """1 for the head of the queue; 0: the job does not wait."""
        entry = self._entry(self._jobs[job])
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
        """Have jobs in the lines that they belong to by now: those whose pause is over, or for which a pool opens."""
        while self._openings and self._openings[0][0] <= now:
            _, job = heappop(self._openings)
            if job in self._queued_at:
                self._open_pools(self._jobs[job], now)
        while self._wakes and self._wakes[0][0] <= now:
            _, job = heappop(self._wakes)
            if job not in self._paused or self._attempts[self._jobs[job].attempt_id].claim is not None:
                continue
            not_before = self._not_before(self._jobs[job])
            if not_before is not None and not_before > now:
                heappush(self._wakes, (not_before, job))
            else:
                del self._paused[job]
                self._line_up(self._jobs[job])

    def try_all_again(self) -> None:
        """Hear that jobs may be placed where they might not, though no node has more than before."""
        self._classes.try_all_again()

    def mind_times(self, *, minded: bool) -> None:
        """Have jobs be of one class only if they are of one project and end alike, as windows ask; or no longer."""
        if self._classes.mind_times(minded=minded):
            for _, name in list(self._line):
                job, since = self._jobs[name], self._queued_at[name]
                self._leave(job)
                self._join(job, since)

    def changed(self, before: Execution | None, after: Execution | None) -> None:
        """Hear of an execution; rank 0 stands for its gang, as all of a gang leave the queue in one step."""
        execution = before if after is None else after
        assert execution is not None
        if execution.rank != 0:
            return
        waited = before is not None and before.state is State.QUEUED
        waits = after is not None and after.state is State.QUEUED
        if waits and not waited:
            assert after is not None
            self._join(self._jobs[execution.job], after.times[State.QUEUED])
        elif waited and not waits:
            self._leave(self._jobs[execution.job])

    def job_changed(self, before: Job | None, after: Job | None) -> None:
        """Hear of a job that is other than before; one that is queued gets the place that it has now."""
        if before is None or after is None or before.id not in self._classes:
            return
        if before.spec is after.spec and before.job_class is after.job_class:
            return
        since = self._queued_at[before.id]
        self._leave(before)
        self._join(after, since)

    def attempt_changed(self, before: Attempt | None, after: Attempt | None) -> None:
        """Hear of an attempt: one that claims seats is in no line, as nothing else is looked for."""
        claimed = before is not None and before.claim is not None
        if after is None or claimed == (after.claim is not None) or after.job not in self._queued_at:
            return
        job = self._jobs[after.job]
        if claimed:
            del self._paused[job.id]
            self._line_up(job)
        else:
            self._leave_line(job)
            self._paused[job.id] = None

    def _join(self, job: Job, since: datetime) -> None:
        insort(self._line, self._entry(job))
        self._queued_at[job.id] = since
        choices = job.spec.pools
        self._classes.add(job, open_pools(choices, timedelta()))
        for opens_at in sorted({since + choice.after for choice in choices if choice.after is not None}):
            heappush(self._openings, (opens_at, job.id))
            self._wake_at(opens_at)
        not_before = self._not_before(job)
        if self._attempts[job.attempt_id].claim is not None:
            self._paused[job.id] = None
        elif not_before is None:
            self._line_up(job)
        else:
            self._paused[job.id] = None
            heappush(self._wakes, (not_before, job.id))

    def _leave(self, job: Job) -> None:
        self._leave_line(job)
        self._paused.pop(job.id, None)
        entry = self._entry(job)
        del self._line[bisect_left(self._line, entry)]
        del self._queued_at[job.id]
        self._classes.remove(job.id)
        self._refused.pop(job.id, None)

    def _open_pools(self, job: Job, now: datetime) -> None:
        self._leave_line(job)
        self._classes.add(job, open_pools(job.spec.pools, now - self._queued_at[job.id]))
        if job.id not in self._paused:
            self._line_up(job)

    def _line_up(self, job: Job) -> None:
        self.lines.add(self._entry(job), job.spec.project, self._classes[job.id], job.spec.ends_within)

    def _leave_line(self, job: Job) -> None:
        """Be in no line; a paused job is in none anyway."""
        if job.id not in self._paused:
            self.lines.remove(self._entry(job), job.spec.project, self._classes[job.id], job.spec.ends_within)

    def _not_before(self, job: Job) -> datetime | None:
        """When the newest attempt may begin at the earliest."""
        return self._attempts[job.attempt_id].not_before

    def _entry(self, job: Job) -> LineEntry:
        return (self._order(job), job.id)
