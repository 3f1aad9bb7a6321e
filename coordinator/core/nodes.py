"""Nodes come, stay, change and go silent."""

from dataclasses import replace

from coordinator.core import attempts, reports
from coordinator.core.answers import Answer, Noted, RefusalCause, Refused
from coordinator.core.cluster import LEASE, LOST_AFTER, Presence
from coordinator.core.events import (
    ExecutionsReported,
    HeartbeatReceived,
    InventoryChanged,
    NodeConnected,
    NodeDisconnected,
)
from coordinator.core.records import Node
from coordinator.core.turn import Turn
from muster.domain.failure import Failure, FailureKind
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.lifecycle import TERMINAL, State


def connect(turn: Turn, event: NodeConnected) -> Answer:
    """A node joins or comes back: believe its inventory and its executions, and send it its whole plan."""
    known, presence = turn.cluster.nodes.get(event.node), turn.cluster.presence.get(event.node)
    if known is not None and known.identity != event.identity and presence is not None and presence.session is not None:
        message = (
            f"another agent is connected as node {event.node} from {known.address}; give each agent its own --name"
        )
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    if presence is not None and _overtaken(turn, presence, event):
        message = f"node {event.node} has opened a newer stream; this one was overtaken on its way"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    turn.put(_record(turn, known, event))
    presence = turn.cluster.appear(event.node, turn.now)
    turn.close_session(event.node)
    presence.session, presence.seen, presence.lost = event.session, True, False
    presence.opened = event.opened
    presence.last_seen_at, presence.plan_at_heartbeat = turn.now, 0
    presence.ghosts = {
        report.execution
        for report in event.reports
        if report.stage not in reports.ENDED and not _wanted(turn, event.node, report.execution)
    }
    _miss_executions(turn, event)
    for report in event.reports:
        reports.take(turn, event.node, report)
    turn.cluster.touch(event.node)
    turn.replan_node(event.node)
    turn.room_changed = True
    return Noted()


def disconnect(turn: Turn, event: NodeDisconnected) -> Answer:
    """Its stream ended; an older stream of a node that is back already does not count."""
    presence = turn.cluster.presence.get(event.node)
    if presence is not None and presence.session == event.session:
        presence.session = None
        turn.cluster.touch(event.node)
    return Noted()


def renew(turn: Turn, event: HeartbeatReceived) -> Answer:
    """Its lease begins anew; a node that missed a plan gets the whole one."""
    presence = turn.cluster.presence.get(event.node)
    if presence is not None and _is_open(presence, event.session):
        presence.last_seen_at = turn.now
        if not presence.plan_at_heartbeat <= event.plan_revision <= presence.plan_revision:
            turn.replan_node(event.node)
        presence.plan_at_heartbeat = presence.plan_revision
    return Noted()


def change_inventory(turn: Turn, event: InventoryChanged) -> Answer:
    """It has other things than before."""
    node, presence = turn.cluster.nodes.get(event.node), turn.cluster.presence.get(event.node)
    if node is not None and presence is not None and _is_open(presence, event.session):
        turn.put(replace(node, inventory=event.inventory))
        turn.room_changed = True
    return Noted()


def take_reports(turn: Turn, event: ExecutionsReported) -> Answer:
    """News about its executions; also a sign of life."""
    presence = turn.cluster.presence.get(event.node)
    if presence is None or not _is_open(presence, event.session):
        return Noted()
    presence.last_seen_at = turn.now
    for report in event.reports:
        reports.take(turn, event.node, report)
    return Noted()


def judge(turn: Turn, node: NodeId) -> None:
    """Look at the lease of a node: silent past LOST_AFTER, its executions count as lost."""
    presence = turn.cluster.presence[node]
    if presence.lost:
        return
    heard_at = max(presence.last_seen_at, turn.cluster.awake_since)
    if turn.now < heard_at + LEASE:
        turn.cluster.watch_lease(node, heard_at + LEASE)
        return
    turn.close_session(node)
    if turn.now < heard_at + LOST_AFTER:
        turn.cluster.watch_lease(node, heard_at + LOST_AFTER)
        return
    presence.lost = True
    turn.cluster.touch(node)
    message = f"its node has been silent for {(turn.now - heard_at).total_seconds():.0f} s"
    for execution in list(turn.cluster.planned(node)):
        failure = Failure(kind=FailureKind.NODE_LOST, message=message)
        attempts.lose(turn, turn.cluster.executions[execution.id], failure)


def _is_open(presence: Presence, session: int | None) -> bool:
    """Whether a message counts: what comes on a stream that was closed is told again by the next Hello, and newer."""
    return presence.session is not None and session in {None, presence.session}


def _overtaken(turn: Turn, presence: Presence, event: NodeConnected) -> bool:
    """Whether a Hello is older than one that was taken, though it comes later: it would deny what runs by now.

    Only for a lease, so that an agent whose clock was put back is not shut out.
    """
    return event.opened < presence.opened and turn.now < presence.last_seen_at + LEASE


def _wanted(turn: Turn, node: NodeId, name: ExecutionId) -> bool:
    execution = turn.cluster.executions.get(name)
    return execution is not None and execution.node == node and execution.state not in TERMINAL


def _record(turn: Turn, known: Node | None, event: NodeConnected) -> Node:
    return Node(
        name=event.node,
        identity=event.identity,
        address=event.address,
        inventory=event.inventory,
        agent_version=event.version,
        joined_at=known.joined_at if known is not None else turn.now,
    )


def _miss_executions(turn: Turn, event: NodeConnected) -> None:
    """Executions that had got somewhere and that the agent does not know any more cannot be brought back."""
    reported = {report.execution for report in event.reports}
    for planned in list(turn.cluster.planned(event.node)):
        execution = turn.cluster.executions.get(planned.id)
        if execution is None or execution.id in reported:
            continue
        if execution.state in TERMINAL:
            turn.put(replace(execution, log_complete=True))
        elif execution.state is State.STOPPING:
            attempts.confirm_stop(turn, execution)
        elif execution.state not in {State.PLACED, State.PREPARING}:
            message = "the agent restarted and does not have the execution any more"
            attempts.fail(turn, execution, Failure(kind=FailureKind.AGENT_RESTARTED, message=message))
