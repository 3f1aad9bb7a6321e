"""Why an attempt is stopped, and how much time its executions have, worked out from the records."""

from datetime import timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Execution, Job
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.stopping.notice import REASONS_OF_FAILURES, StopOrder, StopReason
from muster.domain.jobs.stopping.preemption import DEFAULT_GRACE_MAX, preempt_grace


def stop_order(cluster: Cluster, execution: Execution) -> StopOrder | None:
    """How an execution is to be stopped; None: it is not being stopped."""
    if execution.state is not State.STOPPING:
        return None
    job = cluster.jobs[execution.job]
    return order_for(stop_reason(job, cluster.attempts[execution.attempt_id]), job.spec, longest_grace(cluster, job))


def longest_grace(cluster: Cluster, job: Job) -> timedelta:
    """The longest time that a job gets where it comes back: what its project says, or its department."""
    pool = cluster.unit_load.pool_of(job)
    for unit in cluster.unit_load.units.get(job.spec.project).line():
        if (longest := unit.terms.in_pool(pool).grace_max) is not None:
            return longest
    return DEFAULT_GRACE_MAX


def stop_reason(job: Job, attempt: Attempt) -> StopReason:
    """Why an attempt that is being stopped is; its first failure says more than what was asked for later."""
    if attempt.failure is not None:
        return REASONS_OF_FAILURES.get(attempt.failure.kind, StopReason.FAILED)
    if job.stop_requested_at is None:
        return StopReason.FINISHED
    return StopReason.IDLE if job.stop_reason else StopReason.STOPPED


def order_for(reason: StopReason, spec: JobSpec, longest: timedelta = DEFAULT_GRACE_MAX) -> StopOrder:
    """The order to stop a job for a reason: one that comes back has time to save what was done."""
    timeouts = spec.timeouts
    grace = preempt_grace(timeouts.preempt, timeouts.grace, longest) if reason.comes_back else timeouts.grace
    return StopOrder(reason=reason, grace=grace)
