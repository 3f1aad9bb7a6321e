"""Which waiting jobs their own departments and projects keep from being placed, so that others pass them.

Nobody is passed for ever: once the first job of a project has been barred by a limit or a quota for `BAR_PATIENCE`,
nothing else below the unit with that term is placed until it is; where it is a quota, nothing guaranteed.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.lines import LineEntry
from coordinator.core.placement.request_classes import RequestClass
from coordinator.core.records import Job
from coordinator.core.scheduling.run_limits import longest_runs
from coordinator.core.sharing.job_classes import broken
from coordinator.core.sharing.precedence import Bar, BarKind, barred
from muster.domain.fleet.quota import Amounts, amounts_of_job
from muster.domain.ids import JobId
from muster.domain.jobs.job_class import JobClass

_OF_ALL = frozenset({BarKind.LIMIT, BarKind.MAX_RUNNING, BarKind.LONGEST_RUN})
"""Bars of all jobs of a line alike."""
_FOR_EVER = frozenset({BarKind.LONGEST_RUN})
"""Bars that nothing lifts that ends."""
_PATIENT = frozenset({BarKind.LIMIT, BarKind.QUOTA})
"""Bars for which others wait in the end."""

ComparedJob: TypeAlias = tuple[Job, str]
"""A job and the pool in which it is compared with those of others."""


class Bars:
    """The bars of one look at the queue; asked again after each placement, as a bar may come, and none goes."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self._cluster = cluster
        self._units = cluster.unit_load.units
        self._patience = cluster.unit_load.patience
        self._now = now
        self._runs = longest_runs(cluster)
        self._is_free = not self._units.has_terms and not self._runs
        """Whether nothing can bar any job."""
        self._in_vain: dict[str, set[JobId]] = {}
        """Jobs by project that had no room in those of their pools in which they are not barred."""

    def of(self, job: Job) -> Bar | None:
        """Why a job cannot be placed now, whatever room there is; None: nothing of its own keeps it waiting."""
        if self._is_free:
            return None
        return self._of(job, amounts_of_job(job.spec))

    def pools(self, job: Job) -> tuple[str, ...] | None:
        """The pools in which a queued job may be placed now, in order; None: in any."""
        pools = self._cluster.queue.request_class(job.id).pools
        if self._is_free:
            return pools
        found = list(self.by_pool(job))
        if all(bar is None for _, bar in found):
            return pools
        return tuple(pool for pool, bar in found if bar is None)

    def allowed(self, job: Job, pools: tuple[str, ...]) -> tuple[str, ...]:
        """Pools of these in which nothing of its own keeps a job waiting, as it is or as it might be."""
        if self._is_free:
            return pools
        size = amounts_of_job(job.spec)
        return tuple(pool for pool in pools if self._in_pool(job, size, pool) is None)

    def pool(self, job: Job) -> str:
        """The pool in which a queued job is compared with others: the first in which it is not barred."""
        return next(iter(self.pools(job) or self._pools_of(job)))

    def only_for_ever(self, job: Job) -> bool:
        """Whether a queued job is barred in none of its pools, but for bars of all that are alike and that stay."""
        if self._is_free:
            return True
        return all(bar is None or bar.kind in _FOR_EVER for _, bar in self.by_pool(job))

    def by_pool(self, job: Job) -> Iterator[tuple[str, Bar | None]]:
        """Each pool in which a queued job may be placed by now, in order, with what bars the job there."""
        size = self._cluster.queue.request_class(job.id).size
        return ((pool, self._in_pool(job, size, pool)) for pool in self._pools_of(job))

    def exclude(self, job: Job) -> None:
        """Look at a job no more, as it had no room in those of its pools in which it is not barred."""
        self._in_vain.setdefault(job.spec.project, set()).add(job.id)
        self._units.touch(job.spec.project)

    def excludes_of(self, leaf: str) -> bool:
        """Whether jobs of a project are looked at no more."""
        return leaf in self._in_vain

    def firsts_of(self, leaf: str) -> tuple[ComparedJob, ComparedJob | None]:
        """The first job of a project, and the first one that is not barred; None: all are."""
        lines, jobs = self._cluster.queue.lines, self._cluster.jobs
        first = jobs[lines.first_of(leaf)[1]]
        if self._is_free:
            alone = (first, self._pools_of(first)[0])
            return alone, alone
        by_pool = list(self.by_pool(first))
        pool = next((pool for pool, bar in by_pool if bar is None), None)
        self._note(leaf, first, by_pool[0][1] if pool is None else None)
        compared = (first, by_pool[0][0] if pool is None else pool)
        if pool is not None and first.id not in self._in_vain.get(leaf, ()):
            return compared, compared
        classes = [each for each in lines.request_classes if lines.first(leaf, each) is not None]
        entries = (entry for each in classes if (entry := self.first(leaf, each)) is not None)
        found = min(entries, default=None)
        if found is None:
            return compared, None
        free = jobs[found[1]]
        return compared, (free, self.pool(free))

    def first(self, leaf: str, request_class: RequestClass, ends_within: timedelta | None = None) -> LineEntry | None:
        """The first job of a line that is not barred; None: all are, or there is none.

        With `ends_within`, of those alone that have ended so long after their placement.
        """
        lines = self._cluster.queue.lines
        if ends_within is None:
            return self._first_of(lines.line(leaf, request_class), request_class)
        parts = lines.ending(leaf, request_class, ends_within)
        return min(filter(None, (self._first_of(part, request_class) for part in parts)), default=None)

    def _first_of(self, line: Sequence[LineEntry], request_class: RequestClass) -> LineEntry | None:
        """The first job that is not barred, of some that have one class."""
        if not line or self._is_free:
            return line[0] if line else None
        known: dict[tuple[JobClass, str], Bar | None] = {}
        for entry in line:
            job = self._cluster.jobs[entry[1]]
            if entry[1] in self._in_vain.get(job.spec.project, ()):
                continue
            alike = (job.job_class, job.owner)
            if alike not in known:
                bar = known[alike] = self._of(job, request_class.size)
                if bar is not None and bar.kind in _OF_ALL and len(self._pools_of(job)) == 1:
                    return None
            if known[alike] is None:
                return entry
        return None

    def _pools_of(self, job: Job) -> tuple[str, ...]:
        """The pools that are open for a queued job, in order; there is at least one."""
        pools = self._cluster.queue.request_class(job.id).pools
        return pools or self._cluster.unit_load.pools_of(job.spec)

    def _of(self, job: Job, size: Amounts) -> Bar | None:
        """The bar of the first pool, if there is one in every pool."""
        bars = [self._in_pool(job, size, pool) for pool in self._pools_of(job)]
        return None if None in bars else bars[0]

    def _in_pool(self, job: Job, size: Amounts, pool: str) -> Bar | None:
        limit, longest = job.spec.timeouts.run, self._runs.get(pool)
        if limit is not None and longest is not None and limit > longest:
            wants, most = int(limit.total_seconds()), int(longest.total_seconds())
            return Bar(BarKind.LONGEST_RUN, job.spec.project, 0, wants, most, pool)
        path, unit = self._units.path(job.spec.project, pool), self._units.get(job.spec.project)
        bar = barred(path, unit, size, self._units.counted(pool), job.job_class, job.owner)
        if bar is not None:
            return bar._replace(pool=pool)
        return self._impatient(job, pool, [standing.name for standing in path])

    def _impatient(self, job: Job, pool: str, units: Collection[str]) -> Bar | None:
        """The term for which a job waits because another one of its units has waited for it too long."""
        for project, first in self._patience.at_an_end(units, pool, self._now):
            lines = self._cluster.queue.lines
            still_first = lines.has(project) and lines.first_of(project)[1] == first.job
            if first.job != job.id and still_first and _holds_back(first.bar, job):
                return first.bar._replace(kind=BarKind.TURN, waits_for=first.job)
        return None

    def _note(self, project: str, first: Job, bar: Bar | None) -> None:
        """Remember since when a term keeps the first job of a project waiting that it would fit alone."""
        if bar is None or bar.kind not in _PATIENT:
            self._patience.forget(project)
        elif broken(self._units, first.spec, bar.pool, first.job_class) is None:
            stored = self._cluster.attempts[first.attempt_id].barred
            self._patience.note(project, first.id, bar, self._now, stored)


def _holds_back(bar: Bar, job: Job) -> bool:
    """Whether a job would take what another one waits for."""
    return bar.kind is BarKind.LIMIT or job.job_class is JobClass.GUARANTEED
