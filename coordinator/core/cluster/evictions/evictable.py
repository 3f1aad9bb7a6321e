"""Attempts that may have to make room for others, and those that are making room."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from coordinator.core.cluster.evictions.held import HeldGang
from coordinator.core.cluster.evictions.idle_projects import IdleProjects
from coordinator.core.records import Attempt, Execution, Job
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.job_class import JobClass


class Evictable:
    """An index over attempts."""

    def __init__(self, jobs: Mapping[JobId, Job], members: Callable[[AttemptId], Collection[Execution]]) -> None:
        self._jobs = jobs
        self._members = members
        self._running: dict[str, dict[AttemptId, Attempt]] = {}
        """Attempts, by project."""
        self._spare: Counter[str] = Counter()
        """How many of them are spare, by project; no project has none."""
        self._held: dict[AttemptId, HeldGang] = {}
        """What was looked at, until anything about it changes."""
        self._leaving: dict[AttemptId, None] = {}
        self._version = 0
        self._vain: dict[JobId, tuple[object, datetime | None]] = {}
        self.idle = IdleProjects()

    @property
    def projects(self) -> Collection[str]:
        """The projects of which something runs that may be evicted at some time."""
        return self._running.keys()

    @property
    def with_spare(self) -> Collection[str]:
        """The projects of which something spare runs."""
        return self._spare.keys()

    def running(self, project: str) -> Iterable[HeldGang]:
        """Attempts that hold something, may be evicted at some time, and were not ordered to stop."""
        for attempt_id, attempt in self._running.get(project, {}).items():
            held = self._held.get(attempt_id)
            if held is None:
                job = self._jobs[attempt.job]
                held = self._held[attempt_id] = HeldGang(job, attempt, self._members(attempt_id))
            yield held

    @property
    def leaving(self) -> Collection[AttemptId]:
        """Attempts that were ordered to stop and have not ended."""
        return self._leaving.keys()

    @property
    def version(self) -> int:
        """A number that grows whenever one more runs, has started or leaves."""
        return self._version

    def changed(self, before: Attempt | None, after: Attempt | None) -> None:
        """Hear of an attempt that is new, other than before, or forgotten."""
        attempt = before if after is None else after
        assert attempt is not None
        job, attempt_id = self._jobs[attempt.job], attempt.attempt_id
        holds = after is not None and after.ended_at is None and after.goal is not None
        stops = holds and attempt.goal is Goal.STOP
        runs = holds and not stops and job.job_class is not JobClass.GUARANTEED
        there = self._running.get(job.spec.project, {})
        known, left = there.get(attempt_id), attempt_id in self._leaving
        self._held.pop(attempt_id, None)
        if runs != (known is not None) or stops != left or (known is not None and _started(known, attempt)):
            self._version += 1
        if runs is not (known is not None) and job.job_class is JobClass.SPARE:
            self._count_spare(job.spec.project, 1 if runs else -1)
        if runs:
            self._running.setdefault(job.spec.project, {})[attempt_id] = attempt
        elif known is not None:
            del there[attempt_id]
            if not there:
                del self._running[job.spec.project]
        if stops:
            self._leaving[attempt_id] = None
        else:
            self._leaving.pop(attempt_id, None)

    def _count_spare(self, project: str, sign: int) -> None:
        self._spare[project] += sign
        if not self._spare[project]:
            del self._spare[project]

    def job_changed(self, before: Job | None, after: Job | None) -> None:
        """Hear of a job: with another priority it may give way to others than before."""
        if after is None:
            assert before is not None
            self._vain.pop(before.id, None)
        elif before is not None:
            self._held.pop(after.attempt_id, None)
            if before.spec.priority != after.spec.priority:
                self._version += 1

    def member_changed(self, execution: Execution) -> None:
        """Hear of an execution that may hold something else than before."""
        self._held.pop(execution.attempt_id, None)

    def tried_in_vain(self, job: JobId, state: object, now: datetime) -> bool:
        """Whether nothing has changed since nobody was found for a job."""
        vain, until = self._vain.get(job, (None, None))
        return vain is not None and vain == state and (until is None or now < until)

    def note_vain(self, job: JobId, state: object, until: datetime | None) -> None:
        """Remember that nobody was found for a job; `until`: then some are not safe any more."""
        self._vain[job] = (state, until)

    def note_idle(self, project: str, jobs: Iterable[JobId]) -> None:
        """Remember that nobody was found for these jobs of a project, nor for others of it."""
        times = (self._vain.get(job, (None, None))[1] for job in jobs)
        self.idle.note(project, min(filter(None, times), default=None))

    def protected_for(self, job: JobId, now: datetime) -> datetime | None:
        """The time from which others can be evicted for a job that found nobody; None: no time helps."""
        until = self._vain.get(job, (None, None))[1]
        return until if until is not None and until > now else None


def _started(before: Attempt, after: Attempt) -> bool:
    return before.started_at != after.started_at
