"""What clients are told of a job that is stopped when nobody uses it, or because its pool lets nothing run longer."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.turn import idling
from coordinator.views.silence import clock
from muster.domain.ids import JobId
from muster.domain.quantity import format_duration, moment_text


def idle_outlook(cluster: Cluster, job: JobId, *, soon: bool = False) -> str:
    """When a job is stopped unless it is used, as the rest of a sentence; `soon`: only where people were told of it.

    Empty for a job that has no such limit or does not run.
    """
    record = cluster.jobs[job]
    find = idling.noticed_end if soon else idling.ends_at
    end = find(cluster, record.attempt_id)
    if end is None:
        return ""
    return f"stops at {clock(end)} unless it is used before ({idling.rule_text(cluster, record.attempt_id)})"


def longest_run_outlook(cluster: Cluster, job: JobId) -> str:
    """When a job that runs is stopped by the longest run of its pool, as the rest of a sentence; empty: it is not."""
    attempt, limit = cluster.newest_attempt(job), cluster.jobs[job].spec.timeouts.run
    longest = attempt.longest_run
    if longest is None or attempt.ended_at is not None or (limit is not None and limit <= longest):
        return ""
    told = f"nothing runs longer than {format_duration(longest)} in pool {attempt.pool}"
    return (
        told if attempt.released_at is None else f"{told}, so it ends by {moment_text(attempt.released_at + longest)}"
    )
