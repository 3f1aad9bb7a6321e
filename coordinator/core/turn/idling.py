"""How long an attempt may still go unused: what its job or its project says, and what its agents have told.

What was not heard counts as use: all attempts are used at a start of the coordinator and when it wakes from sleep, and
one is while a node of it is silent.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from coordinator.core.cluster.cluster import HEARTBEAT_INTERVAL, Cluster
from coordinator.core.cluster.deadlines import IdleDue
from muster.domain.fleet.features import INTERACTIVE
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.interactive import notice_before_end, use_told_every
from muster.domain.jobs.lifecycle import TERMINAL
from muster.domain.quantity import format_duration


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


def limit_of(cluster: Cluster, attempt_id: AttemptId) -> timedelta | None:
    """How long an attempt may go unused once it runs; None: for ever."""
    return cluster.attempts[attempt_id].idle_limit(cluster.jobs[attempt_id.job].spec.timeouts.idle)


def rule_text(cluster: Cluster, attempt_id: AttemptId) -> str:
    """The limit of an attempt with who set it: `timeouts.idle: 2h`, or `idle of project vision: 2h`; empty: none."""
    limit, spec = limit_of(cluster, attempt_id), cluster.jobs[attempt_id.job].spec
    if limit is None:
        return ""
    whose = f"idle of project {spec.project}" if spec.timeouts.idle is None else "timeouts.idle"
    return f"{whose}: {format_duration(limit)}"


def limit_by_terms(cluster: Cluster, project: str, pool: str, nodes: Iterable[NodeId]) -> timedelta | None:
    """How long jobs of a project may go unused in a pool, by its terms or those of its department; None: no word.

    None as well where a node has an agent that would not tell of use.
    """
    if not all(INTERACTIVE in cluster.load.total.of(node).features for node in nodes):
        return None
    said = (unit.terms.in_pool(pool).idle for unit in cluster.unit_load.units.get(project).line())
    return next((limit for limit in said if limit is not None), None)


def _limit(cluster: Cluster, attempt_id: AttemptId) -> timedelta | None:
    """How long an attempt may go unused; None: for ever, or it does not run, or is not there any more."""
    attempt = cluster.attempts.get(attempt_id)
    return None if attempt is None or attempt.goal is not Goal.RUN else limit_of(cluster, attempt_id)


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
