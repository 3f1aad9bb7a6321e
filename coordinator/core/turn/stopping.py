"""Why an attempt is stopped, and how much time its executions have, worked out from the records."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Execution, Job
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.stopping.notice import REASONS_OF_FAILURES, StopOrder, StopReason
from muster.domain.jobs.stopping.preemption import preempt_grace


def stop_order(cluster: Cluster, execution: Execution) -> StopOrder | None:
    """How an execution is to be stopped; None: it is not being stopped."""
    if execution.state is not State.STOPPING:
        return None
    job = cluster.jobs[execution.job]
    return order_for(stop_reason(job, cluster.attempts[execution.attempt_id]), job.spec)


def stop_reason(job: Job, attempt: Attempt) -> StopReason:
    """Why an attempt that is being stopped is; its first failure says more than what was asked for later."""
    if attempt.failure is not None:
        return REASONS_OF_FAILURES.get(attempt.failure.kind, StopReason.FAILED)
    if job.stop_requested_at is None:
        return StopReason.FINISHED
    return StopReason.IDLE if job.stop_reason else StopReason.STOPPED


def order_for(reason: StopReason, spec: JobSpec) -> StopOrder:
    """The order to stop a job for a reason: one that comes back has time to save what was done."""
    timeouts = spec.timeouts
    grace = preempt_grace(timeouts.preempt, timeouts.grace) if reason.comes_back else timeouts.grace
    return StopOrder(reason=reason, grace=grace)
