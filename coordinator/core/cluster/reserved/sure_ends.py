"""When executions have ended for sure, by the limits of their jobs alone."""

from datetime import datetime

from coordinator.core.cluster.by_key import Records
from coordinator.core.records import Attempt, Execution
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.stopping.notice import REASONS_OF_FAILURES
from muster.domain.jobs.stopping.preemption import preempt_grace


def sure_end(records: Records, execution: Execution) -> datetime | None:
    """When an execution that holds something has ended at the latest; None: it has no limit.

    It depends on no clock, so what was worked out once stays true until a record changes.
    """
    attempt, spec = records.attempts[execution.attempt_id], records.jobs[execution.job].spec
    stopping_since = execution.times.get(State.STOPPING)
    if execution.state is not State.STOPPING or stopping_since is None:
        return end_by_limit(attempt, spec)
    timeouts = spec.timeouts
    reason = None if attempt.failure is None else REASONS_OF_FAILURES.get(attempt.failure.kind)
    if reason is not None and reason.comes_back:
        return stopping_since + preempt_grace(timeouts.preempt, timeouts.grace)
    return stopping_since + timeouts.grace


def end_by_limit(attempt: Attempt, spec: JobSpec) -> datetime | None:
    """When an attempt that was placed has run for as long as it may, with its grace; None: it has no limit."""
    limit, let_go_by = attempt.run_limit(spec.timeouts.run), attempt.released_at or attempt.deadline
    return None if limit is None or let_go_by is None else let_go_by + limit + spec.timeouts.grace
