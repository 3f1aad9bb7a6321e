"""How long an attempt may still go unused: what its limit says, and what its agents have told.

After a start of the coordinator every attempt counts as used at that moment, as nobody knows what was not heard.
"""

from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import IdleDue
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId
from muster.domain.jobs.interactive import notice_before_end, use_told_every


def ends_at(cluster: Cluster, attempt_id: AttemptId) -> datetime | None:
    """When an attempt is stopped unless it is used before; None: it does not run, or has no such limit.

    An agent tells of a use a while later, which the attempt is given on top.
    """
    attempt = cluster.attempts.get(attempt_id)
    if attempt is None or attempt.goal is not Goal.RUN:
        return None
    limit = cluster.jobs[attempt_id.job].spec.idle_limit
    if limit is None:
        return None
    used_at = cluster.gangs.uses.last(attempt_id) or cluster.started_at
    return used_at + limit + use_told_every(limit)


def notice_at(cluster: Cluster, attempt_id: AttemptId) -> datetime | None:
    """When people are told that an attempt is about to be stopped; None as for its end."""
    end, limit = ends_at(cluster, attempt_id), cluster.jobs[attempt_id.job].spec.idle_limit
    return None if end is None or limit is None else end - notice_before_end(limit)


def noticed_end(cluster: Cluster, attempt_id: AttemptId) -> datetime | None:
    """When an attempt is stopped that is so near its end that people were told; None: it is not near its end."""
    end = ends_at(cluster, attempt_id)
    return end if end is not None and end == cluster.gangs.uses.notice(attempt_id) else None


def watch(cluster: Cluster, attempt_id: AttemptId) -> None:
    """Have an attempt with such a limit looked at when people are to be told of its end."""
    at = notice_at(cluster, attempt_id)
    if at is not None:
        cluster.deadlines.add(at, IdleDue(attempt=attempt_id))
