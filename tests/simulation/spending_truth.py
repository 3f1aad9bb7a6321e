"""What is stored of what attempts have held, against what their executions held, as it was committed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.records import Attempt, Change, DropJob, Execution, Job, KeepSpent, Put
from coordinator.core.spent import Spent
from coordinator.core.turn.spending import spent_of
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts, amounts_of
from muster.domain.ids import AttemptId, ExecutionId, JobId
from muster.domain.jobs.lifecycle import TERMINAL, State
from tests.simulation.world import Violation

_MICROSECOND = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1) // _MICROSECOND


class SpendingTruth:
    """Adds up by itself what executions hold, from their placement until their end is committed."""

    def __init__(self) -> None:
        self.accounts = 0
        """Attempts whose account was right."""
        self._jobs: dict[JobId, Job] = {}
        self._attempts: dict[AttemptId, Attempt] = {}
        self._holding: dict[AttemptId, dict[ExecutionId, tuple[Execution, datetime]]] = {}
        """What holds something, and since when."""
        self._over: dict[AttemptId, Amounts] = {}
        """What attempts have held through executions that hold nothing any more, times microseconds."""
        self._stored: set[AttemptId] = set()
        self._ended: set[ExecutionId] = set()
        self._members: dict[AttemptId, dict[ExecutionId, Execution]] = {}

    def committed(self, changes: Iterable[Change], now: datetime) -> None:
        """Take in what is stored now; attempts come before their accounts."""
        touched: dict[AttemptId, None] = {}
        for change in changes:
            match change:
                case Put(record=Job() as job):
                    self._jobs[job.id] = job
                case Put(record=Attempt() as attempt):
                    self._attempts[attempt.attempt_id] = attempt
                case Put(record=Execution() as execution):
                    touched[execution.attempt_id] = None
                    self._take(execution)
        dropped = {change.job for change in changes if isinstance(change, DropJob)}
        for change in changes:
            if isinstance(change, KeepSpent):
                gone = change.spent.job in dropped
                if gone:
                    self._end_with(change.spent)
                self._check(change.spent, exactly=not gone)
        for attempt_id in touched.keys() - self._stored:
            self._check_running(attempt_id, now)

    def at_rest(self) -> None:
        """Nothing holds anything, and of all that ever did there is an account."""
        missing = [attempt for attempt, held in self._over.items() if any(held) and attempt not in self._stored]
        left = [attempt for attempt, holding in self._holding.items() if holding]
        if missing or left:
            attempts = sorted({*missing, *left})
            raise Violation(f"there is no account of what {attempts[0]} has held", attempts[0].job)

    def _take(self, execution: Execution) -> None:
        self._members.setdefault(execution.attempt_id, {})[execution.id] = execution
        placed_at = execution.times.get(State.PLACED)
        if placed_at is None or execution.id in self._ended:
            return
        holding = self._holding.setdefault(execution.attempt_id, {})
        known, ended = holding.get(execution.id), execution.state in TERMINAL
        if not ended:
            holding[execution.id] = (execution, known[1] if known else placed_at)
        else:
            holding.pop(execution.id, None)
            amounts = amounts_of(self._jobs[execution.job].spec, execution.rank)
            span = max(timedelta(), execution.times[execution.state] - (known[1] if known else placed_at))
            before = self._over.get(execution.attempt_id, NO_AMOUNTS)
            self._over[execution.attempt_id] = before.plus(amounts.times(span // _MICROSECOND))
            self._ended.add(execution.id)

    def _end_with(self, spent: Spent) -> None:
        """Take in the ends of a job that goes with its last ones: they are not stored, and the last one is known."""
        attempt = AttemptId(spent.job, spent.attempt)
        for execution, _ in [*self._holding.get(attempt, {}).values()]:
            self._take(
                replace(execution, state=State.STOPPED, times={**execution.times, State.STOPPED: spent.ended_at})
            )

    def _check(self, spent: Spent, *, exactly: bool) -> None:
        attempt = AttemptId(spent.job, spent.attempt)
        if attempt in self._stored:
            raise Violation(f"there are two accounts of {attempt}", attempt.job)
        if self._holding.get(attempt):
            raise Violation(f"there is an account of {attempt}, which still holds something", attempt.job)
        held = Amounts(*(each // _SECOND for each in self._over.get(attempt, NO_AMOUNTS)))
        less = all(told <= most for told, most in zip(spent.held, held, strict=True))
        if spent.held != held and (exactly or not less):
            raise Violation(f"{attempt} has held {held}, and its account says {spent.held}", attempt.job)
        parts: Mapping[str, int] = {"lost": spent.lost, "borrowed": spent.borrowed}
        for name, part in parts.items():
            if not 0 <= part <= held.gpus:
                raise Violation(f"of what {attempt} has held ({held.gpus}) {part} was {name}", attempt.job)
        self._stored.add(attempt)
        self.accounts += 1

    def _check_running(self, attempt: AttemptId, now: datetime) -> None:
        """What an attempt has held by now that goes on."""
        record = self._attempts[attempt]
        if record.placed_at is None or record.ended_at is not None:
            return
        total = self._over.get(attempt, NO_AMOUNTS)
        job, members = self._jobs[attempt.job], self._members[attempt]
        for execution, since in self._holding.get(attempt, {}).values():
            span = max(timedelta(), now - since) // _MICROSECOND
            total = total.plus(amounts_of(job.spec, execution.rank).times(span))
        told = spent_of(job, record, members.values(), now, record.metered_from)
        held = Amounts(*(each // _SECOND for each in total))
        if told is None or told.held != held:
            raise Violation(f"{attempt} has held {held} by now, and is told to have held {told}", attempt.job)
