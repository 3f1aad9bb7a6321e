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
from coordinator.core.scheduling.order import across_leaves, within_project
from coordinator.core.sharing.pool_standings import PoolStandings
from coordinator.core.sharing.precedence import Bar, PlaceInProject, Tier, UnitKey
from coordinator.core.sharing.unit import Unit
from muster.domain.fleet.quota import Amounts
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
    jobs = islice(enumerate(_in_order(cluster, outlooks), start=1), max(0, first - 1), None)
    found = list(islice((each for each in jobs if wanted(each[1][0])), most + 1))
    lines = tuple(
        _line(cluster, now, outlook, position, job, seen(job.spec.project)) for position, (job, outlook) in found[:most]
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
    units: tuple[UnitKey, ...]
    """Where its units stand among others; the same object in all outlooks that have the same."""


class _Outlooks:
    """The outlooks of queued jobs at one moment, worked out once for jobs that are alike."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self._cluster = cluster
        self._bars = Bars(cluster, now)
        self._known: dict[Hashable, _Outlook] = {}
        self._units: dict[tuple[UnitKey, ...], tuple[UnitKey, ...]] = {}
        lines = cluster.queue.lines
        self._firsts = frozenset(lines.first_of(leaf)[1] for leaf in lines.leaves)
        """The first jobs of projects, each of which may be the one for which others of its units wait."""

    def of(self, job: Job, place: PlaceInProject) -> _Outlook:
        """What a job waits for that has this place in its project, which begins with its class."""
        spec, request_class = job.spec, self._cluster.queue.request_class(job.id)
        is_first, run = job.id in self._firsts, spec.timeouts.run
        alike = (spec.project, request_class, place[0], job.owner, run, is_first)
        found = self._known.get(alike)
        if found is None:
            found = self._known[alike] = self._work_out(job)
        return found

    def _work_out(self, job: Job) -> _Outlook:
        by_pool = list(self._bars.by_pool(job))
        pool, bar = next((each for each in by_pool if each[1] is None), by_pool[0])
        units, _ = across_leaves(self._cluster, job, pool)
        tier = Tier.SPARE if job.job_class is JobClass.SPARE else max((key[0] for key in units), default=Tier.QUOTA)
        size = self._cluster.queue.request_class(job.id).size
        return _Outlook(pool, bar, Tier(tier).name.lower(), size, self._units.setdefault(units, units))


def _in_order(cluster: Cluster, outlooks: _Outlooks) -> Iterator[tuple[Job, _Outlook]]:
    """Queued jobs: the first of each project by precedence, and behind it the next one of that project.

    What a job would use is told as if those before it waited on; who goes next once they are placed may differ.
    """
    by_leaf: dict[str, list[Job]] = {}
    for job in cluster.queue:
        by_leaf.setdefault(job.spec.project, []).append(job)
    # No two jobs have the same place, so nothing behind it is ever compared.
    heap: list[tuple[tuple[UnitKey, ...], PlaceInProject, Job, _Outlook, Iterator[Job]]] = []
    for behind in map(iter, by_leaf.values()):
        job = next(behind)
        place = within_project(job)
        outlook = outlooks.of(job, place)
        heap.append((outlook.units, place, job, outlook, behind))
    heapq.heapify(heap)
    while heap:
        _, _, job, outlook, behind = heapq.heappop(heap)
        yield job, outlook
        for job in behind:
            place = within_project(job)
            outlook = outlooks.of(job, place)
            entry = (outlook.units, place, job, outlook, behind)
            if heap and heap[0] < entry:
                heapq.heappush(heap, entry)
                break
            yield job, outlook


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
