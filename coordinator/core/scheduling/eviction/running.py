"""The gangs of one pool that may have to make room for a job, as an eviction sees them at one moment."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import NamedTuple

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.evictions.held import HeldGang
from coordinator.core.scheduling.eviction.entitlement import EvictionBound, is_over
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang
from coordinator.core.scheduling.eviction.measure import lost_work
from coordinator.core.scheduling.eviction.victims import MOST_CANDIDATES
from coordinator.core.sharing.pool_standings import Path

DEFAULT_MIN_RUNTIME = timedelta(minutes=10)
"""How long an attempt is safe from other projects, unless the terms of its own say otherwise."""
MOST_DOUBLINGS = 2
"""How often that is doubled for jobs that were evicted again and again."""


class _Found(NamedTuple):
    """A gang and where it stands among those that may go; the least goes first."""

    is_safe: bool
    keeps: bool
    """Whether it is not spare."""
    level: int
    lost: int
    older: int
    held: HeldGang
    path: Path
    safe_until: datetime | None


class RunningGangs:
    """Whom some rule may open to a job, whatever their age: at most so many of its own project, and of others."""

    def __init__(self, cluster: Cluster, seeker: RoomSeeker, pool: str, now: datetime) -> None:
        self._cluster = cluster
        self._seeker = seeker
        self._pool = pool
        self._now = now
        self._safe_until: dict[RunningGang, datetime | None] = {}
        own: list[_Found] = []
        others: list[_Found] = []
        for project in cluster.gangs.evictable.projects:
            path = cluster.unit_load.units.path(project, pool)
            (own if path[-1] is seeker.project else others).extend(self._of_project(project, path))
        self.gangs: Sequence[RunningGang] = [*map(self._gang, self._first(own)), *map(self._gang, self._first(others))]
        """The gangs, those that go first before the others."""

    def safe_until(self, gang: RunningGang) -> datetime | None:
        """Until when a gang is safe from the job; None: that cannot be told yet, as it has not started."""
        return self._safe_until[gang]

    def _of_project(self, project: str, path: Path) -> Iterator[_Found]:
        """The gangs of a project that may be victims."""
        own = path[-1] is self._seeker.project
        opens = own or self._is_over(path)
        there = [held for held in self._cluster.gangs.evictable.running(project) if opens or held.is_spare]
        if not there:
            return
        priorities = sorted({held.job.spec.priority for held in there if not held.is_spare})
        load, now, safe_for = self._cluster.unit_load, self._now, self._min_runtime(project, within=own)
        for held in there:
            if load.pool_of(held.job) != self._pool:
                continue
            started, passed = held.attempt.started_at, now - (held.since or now)
            until = None
            if started is not None:
                until = started + safe_for * (1 << min(held.job.evictions, MOST_DOUBLINGS))
            yield _Found(
                is_safe=not held.is_spare and (until is None or until > now),
                keeps=not held.is_spare,
                level=bisect_left(priorities, held.job.spec.priority),
                lost=lost_work(held.weight, max(0, passed.days * 86_400 + passed.seconds)),
                older=-held.order,
                held=held,
                path=path,
                safe_until=until,
            )

    def _is_over(self, path: Path) -> bool:
        """Whether the side of a project, or a department of it, has more than nobody takes."""
        for own, theirs in zip(self._seeker.path, path, strict=False):
            if own is not theirs:
                return is_over(theirs, EvictionBound.QUOTA, self._seeker.counted)
        return False

    @staticmethod
    def _first(found: list[_Found]) -> list[_Found]:
        """Those that go first."""
        return sorted(found) if len(found) <= MOST_CANDIDATES else nsmallest(MOST_CANDIDATES, found)

    def _gang(self, found: _Found) -> RunningGang:
        held = found.held
        gang = RunningGang(
            attempt=held.attempt_id,
            path=found.path,
            size=held.size,
            job_class=held.job.job_class,
            priority=held.job.spec.priority,
            level=found.level,
            lost=found.lost,
            order=held.order,
            freed=held.freed,
            is_safe=found.is_safe,
            is_safe_within=found.is_safe,
        )
        self._safe_until[gang] = found.safe_until
        return gang

    def _min_runtime(self, project: str, *, within: bool) -> timedelta:
        """How long a gang is safe from the job after its start."""
        for unit in self._cluster.unit_load.units.get(project).line():
            terms = unit.terms.in_pool(self._pool)
            said = terms.min_runtime_within if within else terms.min_runtime
            if said is not None:
                return said
        return timedelta() if within else DEFAULT_MIN_RUNTIME
