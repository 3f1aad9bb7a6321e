"""Accounts are what was held: nothing is left out, and nothing counts twice."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.spent import SpentSums, SpentWish
from coordinator.core.turn.spending import spent_of
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts, amounts_of
from muster.domain.ids import AttemptId, ExecutionId, JobId
from muster.domain.jobs.lifecycle import TERMINAL

_SECOND = timedelta(seconds=1) // timedelta(microseconds=1)
_ALL = SpentWish(since=None, until=datetime.max.replace(tzinfo=UTC), words=("job",), most=1_000_000)


class SpendingWitness:
    """Adds up by itself what executions hold, from one look to the next."""

    def __init__(self) -> None:
        self._held: dict[ExecutionId, tuple[AttemptId, Amounts, datetime]] = {}
        """What holds something, how much of it, and since when."""
        self._over: dict[AttemptId, Amounts] = {}
        """What attempts have held through executions that hold nothing any more, times microseconds."""

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
                running = spent_of(cluster.jobs[key.job], attempt, cluster.gangs.members(key), now)
                assert running is not None, f"{key} was placed"
                found[key.job] = found.get(key.job, NO_AMOUNTS).plus(running.held)
        return {job: total for job, total in found.items() if total != NO_AMOUNTS}
