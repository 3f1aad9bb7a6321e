"""What clients see of quotas and of the queue."""

import heapq
from collections.abc import Callable, Hashable, Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Job
from coordinator.core.requests.quotas import unit_of
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.order import across_leaves, within_project, worst_tier
from coordinator.core.sharing.pool_standings import PoolStandings
from coordinator.core.sharing.precedence import Bar, Precedence, Tier
from coordinator.core.sharing.unit import Unit
from muster.domain.fleet.quota import Amounts, amounts_of_job
from muster.domain.fleet.standing_view import PoolStandingView, QueueLine, QueuePage, UnitStandingView
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import State

SeenBy = Callable[[str], bool]
"""Whether the caller may look at a project."""


def unit_views(cluster: Cluster, seen: SeenBy) -> tuple[UnitStandingView, ...]:
    """Projects that the caller may look at, and the departments of these, by name."""
    projects = {project.name: project for project in cluster.projects.values() if seen(project.name)}
    all_seen = len(projects) == len(cluster.projects)
    departments = {
        name for name in cluster.records.departments if all_seen or any(p.department == name for p in projects.values())
    }
    cluster.unit_load.settle()
    return tuple(_unit_view(cluster, name) for name in sorted({*projects, *departments}))


def queue_page(
    cluster: Cluster, now: datetime, seen: SeenBy, wanted: Callable[[Job], bool], first: int, most: int
) -> QueuePage:
    """Queued jobs in the order in which they are tried, from a position on; others are counted and not named."""
    cluster.unit_load.settle()
    outlooks = _Outlooks(cluster, now)
    jobs = (each for each in enumerate(_in_order(cluster, outlooks), start=1) if each[0] >= first)
    found = list(islice((each for each in jobs if wanted(each[1])), most + 1))
    lines = tuple(
        _line(cluster, now, outlooks.of(job), position, job, seen(job.spec.project)) for position, job in found[:most]
    )
    return QueuePage(lines=lines, next_page=str(found[most][0]) if len(found) > most else "")


def _unit_view(cluster: Cluster, name: str) -> UnitStandingView:
    unit, said = cluster.unit_load.units.get(name), unit_of(cluster, name)
    assert said is not None, "it was looked up"
    pools = tuple(_pool_view(cluster.unit_load.units.in_pool(pool), unit) for pool in cluster.unit_load.pools)
    return UnitStandingView(unit=said, running=unit.running, queued=unit.queued, pools=pools)


def _pool_view(pool: PoolStandings, unit: Unit) -> PoolStandingView:
    entitlement, standing = pool.entitlement(unit), pool.path(unit)[-1]
    return PoolStandingView(
        pool=pool.pool,
        quota=entitlement.quota,
        limit=entitlement.limit,
        weight=entitlement.weight,
        rank=entitlement.rank,
        share=Amounts(*standing.share),
        held=Amounts(*standing.held),
        guaranteed=Amounts(*standing.fixed),
        waiting=Amounts(*standing.waiting),
    )


class _Outlook(NamedTuple):
    """What keeps a queued job waiting, and what it would use of its pool."""

    pool: str
    bar: Bar | None
    tier: str
    size: Amounts
    precedence: Precedence
    """The precedence of one of the jobs that have this outlook."""

    def precedence_of(self, job: Job) -> Precedence:
        """Where a job with this outlook stands among the first jobs of all projects."""
        return (self.precedence[0], within_project(job))


class _Outlooks:
    """The outlooks of queued jobs at one moment, worked out once for jobs that are alike."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self._cluster = cluster
        self._bars = Bars(cluster, now)
        self._known: dict[Hashable, _Outlook] = {}

    def of(self, job: Job) -> _Outlook:
        """What a job waits for."""
        spec, queue = job.spec, self._cluster.queue
        # The first job of a project may be the one for which others of its units wait.
        is_first = queue.lines.has(spec.project) and queue.lines.first_of(spec.project)[1] == job.id
        alike = (spec.project, queue.request_class(job.id), job.job_class, job.owner, spec.timeouts.run, is_first)
        found = self._known.get(alike)
        if found is None:
            found = self._known[alike] = self._work_out(job)
        return found

    def _work_out(self, job: Job) -> _Outlook:
        pool = self._bars.pool(job)
        tier = Tier.SPARE if job.job_class is JobClass.SPARE else worst_tier(self._cluster, job, pool)
        precedence = across_leaves(self._cluster, job, pool)
        return _Outlook(pool, self._bars.of(job), tier.name.lower(), amounts_of_job(job.spec), precedence)


def _in_order(cluster: Cluster, outlooks: _Outlooks) -> Iterator[Job]:
    """Queued jobs: the first of each project by precedence, and behind it the next one of that project.

    What a job would use is told as if those before it waited on; who goes next once they are placed may differ.
    """
    leaves: dict[str, Iterator[Job]] = {}
    by_leaf: dict[str, list[Job]] = {}
    for job in cluster.queue:
        by_leaf.setdefault(job.spec.project, []).append(job)
    heap: list[tuple[Precedence, str, Job]] = []
    for leaf, jobs in by_leaf.items():
        leaves[leaf] = iter(jobs)
        job = next(leaves[leaf])
        heap.append((outlooks.of(job).precedence_of(job), leaf, job))
    heapq.heapify(heap)
    while heap:
        _, leaf, job = heap[0]
        yield job
        following = next(leaves[leaf], None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (outlooks.of(following).precedence_of(following), leaf, following))


def _line(cluster: Cluster, now: datetime, outlook: _Outlook, position: int, job: Job, named: bool) -> QueueLine:
    spec = job.spec
    line = QueueLine(
        position=position,
        job=job.id,
        name=spec.name,
        project=spec.project,
        owner=job.owner,
        pool=outlook.pool,
        job_class=job.job_class,
        priority=spec.priority,
        tier=outlook.tier,
        size=outlook.size,
        since=cluster.gangs.rank(job.attempt_id, 0).times[State.QUEUED],
        reason=_reason(cluster, job, now, outlook.bar),
    )
    return line if named else line.unnamed


def _reason(cluster: Cluster, job: Job, now: datetime, bar: Bar | None) -> str:
    attempt = cluster.newest_attempt(job.id)
    if attempt.claim is not None:
        return "evicting"
    if attempt.not_before is not None and attempt.not_before > now:
        return "paused"
    if cluster.gangs.evictable.protected_for(job.id, now) is not None:
        return "protected"
    return "room" if bar is None else bar.kind.name.lower()
