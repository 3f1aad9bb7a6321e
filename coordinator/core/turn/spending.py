"""What attempts have held by the time that they end: an account that outlives their jobs."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.records import Attempt, Execution, Job, KeepSpent, TrimSpent
from coordinator.core.spent import SPENT_KEPT, Spent, sum_known
from muster.domain.fleet.quota import Amounts, amounts_of
from muster.domain.jobs.lifecycle import TERMINAL, State

_TICK = timedelta(microseconds=1)
_TICKS = timedelta(seconds=1) // _TICK
_MILLISECOND = timedelta(milliseconds=1)


class SpendingLedger:
    """What the attempts that ended in one turn have held."""

    def __init__(self) -> None:
        self._spent: list[Spent] = []

    def close(self, job: Job, attempt: Attempt, members: Iterable[Execution]) -> None:
        """Note what an attempt has held that has ended; nothing of one that was never placed."""
        assert attempt.ended_at is not None
        spent = spent_of(job, attempt, members, attempt.ended_at, attempt.metered_from)  # all of it has ended
        if spent is not None:
            self._spent.append(spent)

    def changes(self) -> tuple[KeepSpent | TrimSpent, ...]:
        """What is stored of it, and that the oldest is dropped."""
        if not self._spent:
            return ()
        return (*(KeepSpent(spent=spent) for spent in self._spent), TrimSpent(keep=SPENT_KEPT))


def spent_of(job: Job, attempt: Attempt, members: Iterable[Execution], now: datetime, meter: timedelta) -> Spent | None:
    """What an attempt has held by now, when its meter says this; None: it was not placed."""
    if attempt.placed_at is None:
        return None
    totals, ended_at, good = [0, 0, 0], attempt.placed_at, False
    borrowed, busy, queued_at = 0, None, attempt.placed_at
    for member in members:
        began = member.times.get(State.PLACED)
        if began is None:
            continue
        ended = member.times[member.state] if member.state in TERMINAL else now
        ticks = max(timedelta(), ended - began) // _TICK
        amounts = amounts_of(job.spec, member.rank)
        for place, amount in enumerate(amounts):
            totals[place] += amount * ticks
        over_quota = member.borrowed if member.state in TERMINAL else meter - attempt.metered_from
        borrowed += amounts.gpus * (over_quota // _TICK)
        busy = sum_known(busy, member.gpu_busy_ms)
        queued_at = min(queued_at, member.times.get(State.QUEUED, queued_at))
        ended_at, good = max(ended_at, ended), good or member.state is State.SUCCEEDED
    held = Amounts(*(total // _TICKS for total in totals))
    spent = Spent(
        job=job.id,
        attempt=attempt.number,
        name=job.spec.name,
        project=job.spec.project,
        owner=job.owner,
        pool=attempt.pool,
        job_class=job.job_class.value,
        outcome=_outcome(attempt, good=good),
        held=held,
        lost=0,
        borrowed=min(max(0, borrowed // _TICKS), held.gpus),
        busy=None if busy is None else min(busy, held.gpus),
        waited=_waited(attempt, queued_at, attempt.placed_at) // _MILLISECOND,
        placed_at=attempt.placed_at,
        ended_at=ended_at,
    )
    return spent if attempt.failure is None else _with_loss(spent, attempt)


def _waited(attempt: Attempt, queued_at: datetime, placed_at: datetime) -> timedelta:
    """How long it was in the queue.

    A coordinator that starts counts its stay anew, and executions know when that began; if it was held meanwhile, they
    know of the last stay alone.
    """
    stay = placed_at - max(queued_at, attempt.not_before or queued_at)
    return max(timedelta(), stay, attempt.queue_time(placed_at))


def _with_loss(spent: Spent, attempt: Attempt) -> Spent:
    since = attempt.saved_at or attempt.started_at or spent.placed_at
    return replace(spent, lost=spent.within(since, spent.ended_at).held.gpus)


def _outcome(attempt: Attempt, *, good: bool) -> str:
    if attempt.failure is not None:
        return attempt.failure.kind.value
    if attempt.ended_at is None:
        return "running"
    return "succeeded" if good else "stopped"
