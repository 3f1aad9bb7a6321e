"""Accounts are what was held: nothing is left out, and nothing counts twice."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.spent import SpentSums, SpentWish
from coordinator.core.turn.metering import reading
from coordinator.core.turn.spending import spent_of
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts, amounts_of
from muster.domain.ids import AttemptId, ExecutionId, JobId
from muster.domain.jobs.lifecycle import TERMINAL

_SECOND = timedelta(seconds=1) // timedelta(microseconds=1)
_MICROSECOND = timedelta(microseconds=1)
_GPU_SECOND = 1000
_MILLION = 10**6
_ALL = SpentWish(since=None, until=datetime.max.replace(tzinfo=UTC), words=("job",), most=1_000_000)


_BY_POOL = replace(_ALL, words=("project", "pool"))


class SpendingWitness:
    """Adds up by itself what executions hold, from one look to the next."""

    def __init__(self) -> None:
        self._held: dict[ExecutionId, tuple[AttemptId, Amounts, datetime]] = {}
        """What holds something, how much of it, and since when."""
        self._over: dict[AttemptId, Amounts] = {}
        """What attempts have held through executions that hold nothing any more, times microseconds."""
        self._borrowing = _BorrowingWitness()

    def see(self, cluster: Cluster, spent: Callable[[SpentWish], SpentSums], now: datetime) -> None:
        """Compare what is stored, and what runs, with what was seen to be held; `spent` asks the store."""
        holding = {each.id: each for each in cluster.executions.values() if each.node and each.state not in TERMINAL}
        for gone in self._held.keys() - holding.keys():
            attempt, amounts, since = self._held.pop(gone)
            self._add(attempt, amounts, since, now)
        for name in holding.keys() - self._held.keys():
            job, each = cluster.jobs[holding[name].job], holding[name]
            self._held[name] = (each.attempt_id, amounts_of(job.spec, each.rank), now)
        seen, told = self._seen(now), self._told(cluster, spent, now)
        assert told == seen, f"held {seen}, and the accounts say {told}"
        self._borrowing.see(cluster, spent, now)
        meters_run_by_what_is_above_the_quota(cluster)

    def _add(self, attempt: AttemptId, amounts: Amounts, since: datetime, now: datetime) -> None:
        span = amounts.times(max(timedelta(), now - since) // timedelta(microseconds=1))
        self._over[attempt] = self._over.get(attempt, NO_AMOUNTS).plus(span)

    def _seen(self, now: datetime) -> dict[JobId, Amounts]:
        """What each job has held by now, times seconds."""
        attempts = dict(self._over)
        for attempt, amounts, since in self._held.values():
            span = amounts.times(max(timedelta(), now - since) // timedelta(microseconds=1))
            attempts[attempt] = attempts.get(attempt, NO_AMOUNTS).plus(span)
        found: dict[JobId, Amounts] = {}
        for attempt, total in attempts.items():
            whole = Amounts(*(each // _SECOND for each in total))
            found[attempt.job] = found.get(attempt.job, NO_AMOUNTS).plus(whole)
        return {job: total for job, total in found.items() if total != NO_AMOUNTS}

    @staticmethod
    def _told(cluster: Cluster, spent: Callable[[SpentWish], SpentSums], now: datetime) -> dict[JobId, Amounts]:
        """What the accounts say of each job: what is stored, and what its attempt holds that goes on."""
        found: dict[JobId, Amounts] = {}
        for group in spent(_ALL).groups:
            found[JobId(group.job)] = group.held
        for key, attempt in cluster.attempts.items():
            if attempt.ended_at is None and attempt.placed_at is not None:
                job, members = cluster.jobs[key.job], cluster.gangs.members(key)
                running = spent_of(job, attempt, members, now, attempt.metered_from)
                assert running is not None, f"{key} was placed"
                found[key.job] = found.get(key.job, NO_AMOUNTS).plus(running.held)
        return {job: total for job, total in found.items() if total != NO_AMOUNTS}


def meters_run_by_what_is_above_the_quota(cluster: Cluster) -> None:
    """After a turn each meter runs by what its project holds of its pool, and by its quota."""
    held: Counter[tuple[str, str]] = Counter()
    for each in cluster.executions.values():
        if not each.node or each.state in TERMINAL or not cluster.attempts[each.attempt_id].pool:
            continue
        job = cluster.jobs[each.job]
        held[job.spec.project, cluster.attempts[each.attempt_id].pool] += amounts_of(job.spec, each.rank).gpus
    for (project, pool), gpus in held.items():
        units, meter = cluster.unit_load.units, cluster.records.meters.get((project, pool))
        quota = units.entitlement(project, pool).quota.gpus if 0 in units.counted(pool) else gpus
        above = max(0, gpus - quota) * 10**6 // gpus if gpus else 0
        if gpus:
            runs = 0 if meter is None else meter.millionths
            assert runs == above, f"{project} borrows {above} millionths of {pool}, and its meter runs by {runs}"


class _BorrowingWitness:
    """Adds up by itself what projects hold of pools above their quotas, from one look to the next."""

    def __init__(self) -> None:
        self._borrows: dict[tuple[str, str], int] = {}
        """Thousandths of GPUs above the quota since the last look, by project and pool."""
        self._borrowed: dict[tuple[str, str], int] = {}
        """The same times microseconds, by then."""
        self._held: dict[tuple[str, str], int] = {}
        """All that was held times microseconds, which says how far roundings may have gone."""
        self._looked: datetime | None = None

    def see(self, cluster: Cluster, spent: Callable[[SpentWish], SpentSums], now: datetime) -> None:
        """Compare what the accounts say of each project in each pool with what was seen, to the second."""
        passed = 0 if self._looked is None else max(timedelta(), now - self._looked) // _MICROSECOND
        self._looked = now if self._looked is None else max(now, self._looked)
        for key, borrows in self._borrows.items():
            self._borrowed[key] = self._borrowed.get(key, 0) + borrows * passed
        told = self._told(cluster, spent, now)
        held: dict[tuple[str, str], int] = {}
        for each in cluster.executions.values():
            if each.node and each.state not in TERMINAL:
                job = cluster.jobs[each.job]
                key = (job.spec.project, cluster.attempts[each.attempt_id].pool)
                held[key] = held.get(key, 0) + amounts_of(job.spec, each.rank).gpus
        for key in self._borrowed.keys() | told.keys():
            seen, said = self._borrowed.get(key, 0) // _SECOND, told.get(key, 0)
            slack = 2 * _GPU_SECOND + 2 * self._held.get(key, 0) // _SECOND // _MILLION
            assert abs(seen - said) <= slack, f"{key} borrowed {seen}, and the accounts say {said}"
        for key in self._held.keys() | held.keys():
            self._held[key] = self._held.get(key, 0) + held.get(key, 0) * passed
        self._borrows = {key: max(0, amount - self._quota(cluster, *key, amount)) for key, amount in held.items()}

    @staticmethod
    def _quota(cluster: Cluster, project: str, pool: str, held: int) -> int:
        units = cluster.unit_load.units
        return units.entitlement(project, pool).quota.gpus if 0 in units.counted(pool) else held

    @staticmethod
    def _told(cluster: Cluster, spent: Callable[[SpentWish], SpentSums], now: datetime) -> dict[tuple[str, str], int]:
        """What the accounts say is borrowed: what is stored, and what runs."""
        found: dict[tuple[str, str], int] = {}
        for group in spent(_BY_POOL).groups:
            found[group.project, group.pool] = group.borrowed
        for key, attempt in cluster.attempts.items():
            if attempt.ended_at is None and attempt.placed_at is not None:
                job = cluster.jobs[key.job]
                meter = reading(cluster, job.spec.project, attempt.pool, now)
                running = spent_of(job, attempt, cluster.gangs.members(key), now, meter)
                assert running is not None, f"{key} was placed"
                of = (job.spec.project, attempt.pool)
                found[of] = found.get(of, 0) + running.borrowed
        return found
