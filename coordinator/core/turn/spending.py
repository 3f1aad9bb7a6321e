"""What attempts have held by the time that they end: an account that outlives their jobs."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.records import Attempt, Execution, Job, KeepSpent, TrimSpent
from coordinator.core.spent import SPENT_KEPT, Spent
from muster.domain.fleet.quota import Amounts, amounts_of
from muster.domain.jobs.lifecycle import TERMINAL, State

_TICK = timedelta(microseconds=1)
_TICKS = timedelta(seconds=1) // _TICK


class SpendingLedger:
    """What the attempts that ended in one turn have held."""

    def __init__(self) -> None:
        self._spent: list[Spent] = []

    def close(self, job: Job, attempt: Attempt, members: Iterable[Execution]) -> None:
        """Note what an attempt has held that has ended; nothing of one that was never placed."""
        assert attempt.ended_at is not None
        spent = spent_of(job, attempt, members, attempt.ended_at)
        if spent is not None:
            self._spent.append(spent)

    def changes(self) -> tuple[KeepSpent | TrimSpent, ...]:
        """What is stored of it, and that the oldest is dropped."""
        if not self._spent:
            return ()
        return (*(KeepSpent(spent=spent) for spent in self._spent), TrimSpent(keep=SPENT_KEPT))


def spent_of(job: Job, attempt: Attempt, members: Iterable[Execution], now: datetime) -> Spent | None:
    """What an attempt has held by now; None: it was not placed."""
    if attempt.placed_at is None:
        return None
    totals, ended_at, good = [0, 0, 0], attempt.placed_at, False
    for member in members:
        began = member.times.get(State.PLACED)
        if began is None:
            continue
        ended = member.times[member.state] if member.state in TERMINAL else now
        ticks = max(timedelta(), ended - began) // _TICK
        for place, amount in enumerate(amounts_of(job.spec, member.rank)):
            totals[place] += amount * ticks
        ended_at, good = max(ended_at, ended), good or member.state is State.SUCCEEDED
    spent = Spent(
        job=job.id,
        attempt=attempt.number,
        name=job.spec.name,
        project=job.spec.project,
        owner=job.owner,
        pool=attempt.pool,
        job_class=job.job_class.value,
        outcome=_outcome(attempt, good=good),
        held=Amounts(*(total // _TICKS for total in totals)),
        lost=0,
        placed_at=attempt.placed_at,
        ended_at=ended_at,
    )
    return spent if attempt.failure is None else _with_loss(spent, attempt)


def _with_loss(spent: Spent, attempt: Attempt) -> Spent:
    since = attempt.saved_at or attempt.started_at or spent.placed_at
    return replace(spent, lost=spent.within(since, spent.ended_at).held.gpus)


def _outcome(attempt: Attempt, *, good: bool) -> str:
    if attempt.failure is not None:
        return attempt.failure.kind.value
    if attempt.ended_at is None:
        return "running"
    return "succeeded" if good else "stopped"
