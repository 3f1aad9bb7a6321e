"""What clients are told of a job that is stopped when nobody uses it."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.turn import idling
from coordinator.views.silence import clock
from muster.domain.ids import JobId
from muster.domain.quantity import format_duration


def idle_outlook(cluster: Cluster, job: JobId, *, soon: bool = False) -> str:
    """When a job is stopped unless it is used, as the rest of a sentence; `soon`: only where people were told of it.

    Empty for a job that has no such limit or does not run.
    """
    record = cluster.jobs[job]
    find = idling.noticed_end if soon else idling.ends_at
    end, limit = find(cluster, record.attempt_id), record.spec.idle_limit
    if end is None or limit is None:
        return ""
    return f"stops at {clock(end)} unless it is used before (timeouts.idle: {format_duration(limit)})"
