"""What clients see of quotas and of the queue."""

import heapq
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Job
from coordinator.core.requests.quotas import unit_of
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.order import across_leaves, worst_tier
from coordinator.core.sharing.pool_standings import PoolStandings
from coordinator.core.sharing.precedence import Bar, Precedence, Tier
from coordinator.core.sharing.unit import Unit
from muster.domain.fleet.quota import Amounts, amounts_of_job
from muster.domain.fleet.standing_view import PoolStandingView, QueueLine, QueuePage, UnitStandingView
from muster.domain.ids import JobId
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
    bars = Bars(cluster, now)
    jobs = (each for each in enumerate(_in_order(cluster, bars), start=1) if each[0] >= first)
    found = list(islice((each for each in jobs if wanted(each[1])), most + 1))
    lines = tuple(_line(cluster, now, bars, position, job, seen(job.spec.project)) for position, job in found[:most])
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


def _in_order(cluster: Cluster, bars: Bars) -> Iterator[Job]:
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
        heap.append((across_leaves(cluster, job, bars.pool(job)), leaf, job))
    heapq.heapify(heap)
    while heap:
        _, leaf, job = heap[0]
        yield job
        following = next(leaves[leaf], None)
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (across_leaves(cluster, following, bars.pool(following)), leaf, following))


def _line(cluster: Cluster, now: datetime, bars: Bars, position: int, job: Job, named: bool) -> QueueLine:
    spec, bar = job.spec, bars.of(job)
    since = cluster.gangs.rank(job.attempt_id, 0).times[State.QUEUED]
    return QueueLine(
        position=position,
        job=job.id if named else JobId(""),
        name=spec.name if named else "",
        project=spec.project if named else "",
        owner=job.owner if named else "",
        pool=bars.pool(job),
        job_class=job.job_class,
        priority=spec.priority if named else 0,
        tier=_tier(cluster, job, bars),
        size=amounts_of_job(spec),
        since=since,
        reason=_reason(cluster, job, now, bar),
    )


def _reason(cluster: Cluster, job: Job, now: datetime, bar: Bar | None) -> str:
    attempt = cluster.newest_attempt(job.id)
    if attempt.claim is not None:
        return "evicting"
    if attempt.not_before is not None and attempt.not_before > now:
        return "paused"
    if cluster.gangs.evictable.protected_for(job.id, now) is not None:
        return "protected"
    return "room" if bar is None else bar.kind.name.lower()


def _tier(cluster: Cluster, job: Job, bars: Bars) -> str:
    if job.job_class is JobClass.SPARE:
        return Tier.SPARE.name.lower()
    return worst_tier(cluster, job, bars.pool(job)).name.lower()
