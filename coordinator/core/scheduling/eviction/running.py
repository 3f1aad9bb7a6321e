"""The gangs of one pool that may have to make room, as an eviction sees them at one moment."""

from bisect import bisect_left
from collections.abc import Iterable
from datetime import datetime, timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Job
from coordinator.core.scheduling.eviction.gangs import RunningGang
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts, amounts_of, amounts_of_job
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.job_class import JobClass

DEFAULT_MIN_RUNTIME = timedelta(minutes=10)
"""How long an attempt is safe from other projects, unless the terms of its own say otherwise."""
MOST_DOUBLINGS = 2
"""How often that is doubled for jobs that were evicted again and again."""
ORDERS_A_SECOND = 1 << 32
"""Room for sequence numbers between the orders of two seconds."""


class RunningGangs:
    """Makes gangs out of attempts; what concerns whole projects is worked out once."""

    def __init__(self, cluster: Cluster, pool: str, now: datetime) -> None:
        self._cluster = cluster
        self._pool = pool
        self._now = now
        self._min_runtimes: dict[str, tuple[timedelta, timedelta]] = {}
        self._priorities: dict[str, list[int]] = {}
        """The priorities of the preemptible jobs that run in each project, each once, the lowest first."""

    def all(self) -> list[RunningGang]:
        """Every gang of the pool that is not guaranteed and was not ordered to stop."""
        load = self._cluster.unit_load
        jobs = ((each, self._cluster.jobs[each.job]) for each in self._cluster.gangs.evictable.running)
        there = [(each, job) for each, job in jobs if load.pool_of(job) == self._pool]
        self._priorities = _priorities(job for _, job in there)
        return [self._gang(each, job) for each, job in there]

    def safe_until(self, attempt: AttemptId, *, within: bool) -> datetime | None:
        """Until when an attempt is safe from other projects, or within its own; None: that cannot be told yet."""
        record, job = self._cluster.attempts[attempt], self._cluster.jobs[attempt.job]
        return self._safe_until(record, job)[within]

    def _gang(self, attempt_id: AttemptId, job: Job) -> RunningGang:
        cluster, attempt = self._cluster, self._cluster.attempts[attempt_id]
        since = attempt.saved_at or attempt.started_at or attempt.placed_at or self._now
        others, own = self._safe_until(attempt, job)
        return RunningGang(
            attempt=attempt_id,
            path=cluster.unit_load.units.path(job.spec.project, self._pool),
            size=amounts_of_job(job.spec),
            job_class=job.job_class,
            priority=job.spec.priority,
            level=bisect_left(self._priorities.get(job.spec.project, ()), job.spec.priority),
            lost_seconds=max(0, int((self._now - since).total_seconds())),
            order=int((attempt.placed_at or self._now).timestamp()) * ORDERS_A_SECOND + job.sequence,
            freed=self._freed(attempt_id, job),
            is_safe=others is None or others > self._now,
            is_safe_within=own is None or own > self._now,
        )

    def _freed(self, attempt_id: AttemptId, job: Job) -> dict[NodeId, Amounts]:
        freed: dict[NodeId, Amounts] = {}
        for member in self._cluster.gangs.members(attempt_id):
            if member.node is not None and member.id in self._cluster.load.used(member.node).executions:
                freed[member.node] = freed.get(member.node, NO_AMOUNTS).plus(amounts_of(job.spec, member.rank))
        return freed

    def _safe_until(self, attempt: Attempt, job: Job) -> tuple[datetime | None, datetime | None]:
        """From other projects, and within its own; a gang that has not started yet is safe until it has."""
        if attempt.started_at is None:
            return (None, None)
        others, own = self._min_runtimes_of(job.spec.project)
        longer = 1 << min(job.evictions, MOST_DOUBLINGS)
        return (attempt.started_at + others * longer, attempt.started_at + own * longer)

    def _min_runtimes_of(self, project: str) -> tuple[timedelta, timedelta]:
        known = self._min_runtimes.get(project)
        if known is None:
            terms = [unit.terms.in_pool(self._pool) for unit in self._cluster.unit_load.units.get(project).line()]
            others = next((said for each in terms if (said := each.min_runtime) is not None), DEFAULT_MIN_RUNTIME)
            own = next((said for each in terms if (said := each.min_runtime_within) is not None), timedelta())
            known = self._min_runtimes[project] = (others, own)
        return known


def _priorities(jobs: Iterable[Job]) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for job in jobs:
        if job.job_class is JobClass.PREEMPTIBLE:
            found.setdefault(job.spec.project, set()).add(job.spec.priority)
    return {project: sorted(priorities) for project, priorities in found.items()}
