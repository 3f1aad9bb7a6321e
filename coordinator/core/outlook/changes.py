"""Changes to a queued job, each of which would have it placed now: fewer workers, no level, another pool, another
class, a shorter limit on run time.

A change is tried by the rules of the cycle: the job keeps its place in the queue, the terms of its units hold, and what
is kept for the head is not touched by others, unless they end before it could start.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement import placement
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.placement import NoFit
from coordinator.core.records import Job
from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.passing import Passing
from coordinator.core.scheduling.windows import closed_nodes
from coordinator.core.sharing.precedence import BarKind
from coordinator.core.sharing.sentences import bar_text
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import HelpfulChange, PoolRefusal
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.quantity import format_duration

MOST_POOLS_TRIED = 8
"""Pools that are told of, or tried, for one job."""

_MINUTE = timedelta(minutes=1)


def helpful_changes(cluster: Cluster, job: JobId, now: datetime) -> tuple[HelpfulChange, ...]:
    """What would have a queued job placed now that has no room, or that a term keeps waiting."""
    trial = _Trial(cluster, cluster.jobs[job], now)
    return (*trial.fewer_workers(), *trial.no_level(), *trial.other_pools(), *trial.other_class(), *trial.shorter_run())


def pool_refusals(cluster: Cluster, job: JobId, now: datetime) -> tuple[PoolRefusal, ...]:
    """Why a queued job has no place in each of the pools where it may lie now; none where there is one pool alone."""
    trial = _Trial(cluster, cluster.jobs[job], now)
    return tuple(trial.refusals()) if len(trial.pools) > 1 else ()


class _Trial:
    """One job as it might have been submitted."""

    def __init__(self, cluster: Cluster, job: Job, now: datetime) -> None:
        self._cluster = cluster
        self._job = job
        self._now = now
        self._bars = Bars(cluster, now)
        wanted = cluster.queue.request_class(job.id).pools
        self.pools = wanted or cluster.unit_load.pools_of(job.spec)
        """The pools in which it is looked for room now, in order."""
        kept = cluster.load.reservation
        self._is_behind = kept is not None and kept.job != job.id
        """Whether something is kept for another job."""
        self._passing = Passing(cluster, now)
        self._free = cluster.load.free.fresh()
        self._rooms = cluster.load.unreserved.fresh() if self._is_behind else self._free

    def refusals(self) -> Iterator[PoolRefusal]:
        """Why it is not in each of its pools."""
        for pool, bar in islice(self._bars.by_pool(self._job), MOST_POOLS_TRIED):
            if bar is not None:
                yield PoolRefusal(pool=pool, reason=bar_text(bar, amounts_of_job(self._job.spec)))
                continue
            fit = placement.place(self._job.spec, self._available(self._job, (pool,), self._free))
            kept = "has room, but what is free is kept for others"
            yield PoolRefusal(pool=pool, reason=str(fit) if isinstance(fit, NoFit) else kept)

    def fewer_workers(self) -> Iterator[HelpfulChange]:
        """The most workers that would be placed, where there is one kind of them."""
        spec = self._job.spec
        if len(spec.roles) != 1:
            return
        [role] = spec.roles

        def is_too_many(count: int) -> bool:
            fewer = replace(spec, roles=(replace(role, count=count),))
            return not self._starts(replace(self._job, spec=fewer), self.pools)

        most = bisect_left(range(1, role.count), True, key=is_too_many)
        if most:
            why = "fits now" if most == 1 else "fit now"
            yield HelpfulChange(change=f"workers: {most}", why=f"{most} of {role.count} {why}")

    def no_level(self) -> Iterator[HelpfulChange]:
        """No level, where there is room for all of it but not close together."""
        spec = self._job.spec
        if spec.topology.required is None:
            return
        changed = replace(spec, topology=replace(spec.topology, required=None))
        if self._starts(replace(self._job, spec=changed), self.pools):
            why = f"there is room, but not in one {spec.topology.required}"
            yield HelpfulChange(change="no topology.required", why=why)

    def other_pools(self) -> Iterator[HelpfulChange]:
        """Pools that it does not name, or for which it still waits, and that have room."""
        if not self._job.spec.pools:
            return
        others = [pool for pool in self._cluster.unit_load.pools if pool not in self.pools]
        for pool in others[:MOST_POOLS_TRIED]:
            changed = replace(self._job.spec, pools=(PoolChoice(pool=pool),))
            if self._starts(replace(self._job, spec=changed), (pool,)):
                yield HelpfulChange(change=f"pools: [{pool}]", why=f"pool {pool} has room")

    def other_class(self) -> Iterator[HelpfulChange]:
        """Preemptible, where guaranteed jobs of a unit hold what they may."""
        bar = self._bars.of(self._job)
        if self._job.job_class is not JobClass.GUARANTEED or bar is None or bar.kind is BarKind.LIMIT:
            return
        changed = replace(self._job, job_class=JobClass.PREEMPTIBLE)
        if self._starts(changed, self.pools):
            yield HelpfulChange(
                change=f"class: {JobClass.PREEMPTIBLE}", why=f"it may have more than the quota of {bar.unit}"
            )

    def shorter_run(self) -> Iterator[HelpfulChange]:
        """The longest run after which it has ended before the head could start; whole minutes, one less to act in."""
        within, timeouts = self._passing.within, self._job.spec.timeouts
        if not self._is_behind or within is None or self._passing.lets(self._job.spec):
            return
        run = (within - self._job.spec.armed_within - timeouts.grace) // _MINUTE * _MINUTE - _MINUTE
        if run < _MINUTE or (timeouts.expected is not None and timeouts.expected > run):
            return
        changed = replace(self._job, spec=replace(self._job.spec, timeouts=replace(timeouts, run=run)))
        if self._starts(changed, self.pools):
            why = "it would have ended before the next in the queue could start"
            yield HelpfulChange(change=f"timeouts.run: {format_duration(run)}", why=why)

    def _starts(self, changed: Job, pools: tuple[str, ...]) -> bool:
        """Whether a job would be placed now in one of these pools."""
        allowed = self._bars.allowed(changed, pools)
        if not allowed:
            return False
        if placement.fits(changed.spec, self._available(changed, allowed, self._rooms)):
            return True
        passes = self._is_behind and self._passing.lets(changed.spec)
        return passes and placement.fits(changed.spec, self._available(changed, allowed, self._free))

    def _available(self, job: Job, pools: tuple[str, ...], capacities: Capacities) -> Available:
        closed = closed_nodes(self._cluster, job.spec, self._now)
        return Available(capacities=capacities, pools=pools, closed=closed)
