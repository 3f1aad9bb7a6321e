"""How long an attempt may still go unused: what its limit says, and what its agents have told.

What was not heard counts as use: all attempts are used at a start of the coordinator and when it wakes from sleep, and
one is while a node of it is silent.
"""

from datetime import datetime, timedelta

from coordinator.core.cluster.cluster import HEARTBEAT_INTERVAL, Cluster
from coordinator.core.cluster.deadlines import IdleDue
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.interactive import notice_before_end, use_told_every
from muster.domain.jobs.lifecycle import TERMINAL


def ends_at(cluster: Cluster, attempt_id: AttemptId) -> datetime | None:
    """When an attempt is stopped unless it is used before; None: it does not run, or has no such limit.

    An agent tells of a use a while later, which the attempt is given on top.
    """
    limit = _limit(cluster, attempt_id)
    return None if limit is None else cluster.gangs.uses.last(attempt_id) + limit + use_told_every(limit)


def notice_at(cluster: Cluster, attempt_id: AttemptId) -> datetime | None:
    """When people are told that an attempt is about to be stopped; None as for its end."""
    end, limit = ends_at(cluster, attempt_id), _limit(cluster, attempt_id)
    return None if end is None or limit is None else end - notice_before_end(limit)


def _limit(cluster: Cluster, attempt_id: AttemptId) -> timedelta | None:
    """How long an attempt may go unused; None: for ever, or it does not run, or is not there any more."""
    attempt = cluster.attempts.get(attempt_id)
    if attempt is None or attempt.goal is not Goal.RUN:
        return None
    return cluster.jobs[attempt_id.job].spec.idle_limit


def noticed_end(cluster: Cluster, attempt_id: AttemptId) -> datetime | None:
    """When an attempt is stopped that is so near its end that people were told; None: it is not near its end."""
    end = ends_at(cluster, attempt_id)
    return end if end is not None and end == cluster.gangs.uses.notice(attempt_id) else None


def is_heard(cluster: Cluster, attempt_id: AttemptId, now: datetime) -> bool:
    """Whether every node on which something of an attempt runs is heard now, so that all use of it is known."""
    nodes = {member.node for member in cluster.gangs.members(attempt_id) if member.state not in TERMINAL}
    return all(node is not None and _is_node_heard(cluster, node, now) for node in nodes)


def _is_node_heard(cluster: Cluster, node: NodeId, now: datetime) -> bool:
    presence = cluster.presence.get(node)
    if presence is None or presence.session is None:
        return False
    return now - cluster.presence.heard_at(node) < 2 * HEARTBEAT_INTERVAL


def watch(cluster: Cluster, attempt_id: AttemptId) -> None:
    """Have an attempt with such a limit looked at when people are to be told of its end."""
    at = notice_at(cluster, attempt_id)
    if at is not None:
        cluster.deadlines.add(at, IdleDue(attempt=attempt_id))
