"""Attempts that may have to make room for others, and those that are making room."""

from collections.abc import Collection, Mapping
from datetime import datetime

from coordinator.core.records import Attempt, Job
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.job_class import JobClass


class Evictable:
    """An index over attempts."""

    def __init__(self, jobs: Mapping[JobId, Job]) -> None:
        self._jobs = jobs
        self._running: dict[AttemptId, None] = {}
        self._leaving: dict[AttemptId, None] = {}
        self._version = 0
        self._vain: dict[JobId, tuple[object, datetime | None]] = {}

    @property
    def running(self) -> Collection[AttemptId]:
        """Attempts that hold something, may be evicted at some time, and were not ordered to stop."""
        return self._running.keys()

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
        runs = after is not None and after.ended_at is None and after.goal is not None
        stops = runs and after is not None and after.goal is Goal.STOP
        open_to_others = self._jobs[attempt.job].job_class is not JobClass.GUARANTEED
        if before is not None and before.started_at != attempt.started_at:
            self._version += 1
        self._note(self._leaving, attempt.attempt_id, is_in=stops)
        self._note(self._running, attempt.attempt_id, is_in=runs and not stops and open_to_others)

    def job_changed(self, before: Job | None, after: Job | None) -> None:
        """Hear of a job: with another priority it may give way to others than before."""
        if after is None:
            assert before is not None
            self._vain.pop(before.id, None)
        elif before is not None and before.spec.priority != after.spec.priority:
            self._version += 1

    def tried_in_vain(self, job: JobId, state: object, now: datetime) -> bool:
        """Whether nothing has changed since nobody was found for a job."""
        vain, until = self._vain.get(job, (None, None))
        return vain is not None and vain == state and (until is None or now < until)

    def note_vain(self, job: JobId, state: object, until: datetime | None) -> None:
        """Remember that nobody was found for a job; `until`: then some are not safe any more."""
        self._vain[job] = (state, until)

    def protected_for(self, job: JobId, now: datetime) -> datetime | None:
        """The time from which others can be evicted for a job that found nobody; None: no time helps."""
        until = self._vain.get(job, (None, None))[1]
        return until if until is not None and until > now else None

    def _note(self, attempts: dict[AttemptId, None], attempt: AttemptId, *, is_in: bool) -> None:
        if is_in != (attempt in attempts):
            self._version += 1
        if is_in:
            attempts[attempt] = None
        else:
            attempts.pop(attempt, None)
