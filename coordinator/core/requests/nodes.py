"""Nodes come, stay, change, go silent and are given up."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from coordinator.core.answers import Answer, Noted, RefusalCause, Refused
from coordinator.core.attempts import attempts, reports, storing
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import (
    ExecutionsReported,
    HeartbeatReceived,
    InventoryChanged,
    NodeConnected,
    NodeDisconnected,
    NodeLabelled,
    RemovalRequested,
)
from coordinator.core.records import Execution, Node
from coordinator.core.requests.inventories import notice_news
from coordinator.core.turn.fencing import lost_at
from coordinator.core.turn.notices import notice_node
from coordinator.core.turn.turn import Turn
from muster.domain.data.outputs import OutputsStage
from muster.domain.event import NodeEventKind
from muster.domain.fleet.node import NodeState, relabelled
from muster.domain.gangs.fence import LEASE
from muster.domain.ids import AttemptId, ExecutionId, NodeId
from muster.domain.jobs.disconnect import DEFAULT_LOST_AFTER
from muster.domain.jobs.failure import Failure, FailureKind
from muster.domain.jobs.lifecycle import TERMINAL, State


def connect(turn: Turn, event: NodeConnected) -> Answer:
    """A node joins or comes back: believe its inventory and its executions, and send it its whole plan."""
    known, presence = turn.cluster.nodes.get(event.node), turn.cluster.presence.get(event.node)
    if known is not None and known.identity != event.identity and presence is not None and presence.session is not None:
        message = (
            f"another agent is connected as node {event.node} from {known.address}; give each agent its own --name"
        )
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    if presence is not None and presence.has_overtaken(event.opened, turn.now):
        message = f"node {event.node} has opened a newer stream; this one was overtaken on its way"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    if known is None and len(turn.cluster.nodes) >= turn.cluster.limits.nodes:
        message = f"the coordinator knows {len(turn.cluster.nodes)} nodes and takes no more; remove some that are gone"
        return Refused(cause=RefusalCause.EXHAUSTED, message=message)
    if known is None:
        notice_node(turn, event.node, NodeEventKind.JOINED)
    elif presence is not None and presence.seen and presence.state is not NodeState.READY:
        notice_node(turn, event.node, NodeEventKind.BACK)
    notice_news(turn, event.node, None if known is None else known.inventory, event.inventory)
    turn.put(_record(turn, known, event))
    presence = turn.cluster.appear(event.node, turn.now)
    heard_at = turn.cluster.presence.heard_at(event.node)
    turn.close_session(event.node)
    presence.opened(event.session, event.opened, _unwanted(turn, event), turn.now)
    if known is not None and known.identity != event.identity:
        _lose_to_a_namesake(turn, event, heard_at)
    _miss_executions(turn, event)
    for report in event.reports:
        reports.take(turn, event.node, report, log_kept=report.execution in event.logs_kept)
    turn.sends.whole(event.node)
    turn.reconsider_queue()
    return Noted()


def disconnect(turn: Turn, event: NodeDisconnected) -> Answer:
    """A node's stream has ended; an older stream of a node that is back already does not count."""
    presence = turn.cluster.presence.get(event.node)
    if presence is not None and presence.session == event.session:
        notice_node(turn, event.node, NodeEventKind.UNREACHABLE, "its stream ended")
        presence.closed()
    return Noted()


def renew(turn: Turn, event: HeartbeatReceived) -> Answer:
    """A node's lease begins anew; one that missed a plan gets the whole one. Refused if that stream does not count."""
    presence = turn.cluster.presence.get(event.node)
    if presence is None or not presence.counts(event.session):
        return Refused(cause=RefusalCause.CONFLICT, message="the stream is not open any more")
    presence.heard(turn.now)
    if not presence.applied(event.plan_revision):
        turn.sends.whole(event.node)
    return Noted()


def change_inventory(turn: Turn, event: InventoryChanged) -> Answer:
    """A node has other things than before."""
    node, presence = turn.cluster.nodes.get(event.node), turn.cluster.presence.get(event.node)
    if node is not None and presence is not None and presence.counts(event.session):
        notice_news(turn, event.node, node.inventory, event.inventory)
        turn.put(replace(node, inventory=event.inventory))
        turn.reconsider_queue()
    return Noted()


def take_labels(turn: Turn, event: NodeLabelled) -> Answer:
    """A node has other labels than before; one that never connected gets them when it does."""
    node = turn.cluster.nodes.get(event.node)
    if node is not None:
        labels = relabelled(node.inventory.labels, event.labels)
        inventory = replace(node.inventory, labels=labels)
        notice_news(turn, event.node, node.inventory, inventory)
        turn.put(replace(node, inventory=inventory))
        turn.reconsider_queue()
    return Noted()


def take_reports(turn: Turn, event: ExecutionsReported) -> Answer:
    """News about its executions; also a sign of life."""
    presence = turn.cluster.presence.get(event.node)
    if presence is None or not presence.counts(event.session):
        return Noted()
    presence.heard(turn.now)
    for report in event.reports:
        reports.take(turn, event.node, report, log_kept=report.execution in event.logs_kept)
    return Noted()


def judge(turn: Turn, node: NodeId) -> None:
    """Look at the lease of a node that may be silent; what it runs is lost by the rules of each job."""
    presence, heard_at = turn.cluster.presence[node], turn.cluster.presence.heard_at(node)
    if turn.now < heard_at + LEASE:
        turn.cluster.deadlines.watch_lease(node, heard_at + LEASE)
        return
    if presence.session is not None:
        silent = f"it has been silent for {(turn.now - heard_at).total_seconds():.0f} s"
        notice_node(turn, node, NodeEventKind.UNREACHABLE, silent)
    turn.close_session(node)
    looks = list(_lose_overdue(turn, node))
    if presence.state is not NodeState.LOST and turn.now >= heard_at + DEFAULT_LOST_AFTER:
        notice_node(turn, node, NodeEventKind.LOST)
        presence.lost()
        storing.lose(turn, node, "its node is lost")
        turn.reconsider_queue()  # what is claimed there is lost
    if presence.state is not NodeState.LOST:
        looks.append(heard_at + DEFAULT_LOST_AFTER)
    if looks:
        turn.cluster.deadlines.watch_lease(node, min(looks))


def _lose_overdue(turn: Turn, node: NodeId) -> Iterator[datetime]:
    """Give up what was silent for too long; when the rest is worth another look."""
    times: dict[AttemptId, datetime | None] = {}
    for name in [execution.id for execution in turn.cluster.load.planned(node)]:
        execution = turn.cluster.executions[name]
        if execution.state in TERMINAL:
            continue
        attempt_id = execution.attempt_id
        if attempt_id not in times:
            times[attempt_id] = lost_at(turn.cluster, execution)
        at = times[attempt_id]
        if at is None or at > turn.now:
            yield turn.now + LEASE if at is None else at
            continue
        heard_at = turn.cluster.presence.heard_at(node)
        _lose(turn, execution, heard_at, f"its node has been silent for {(turn.now - heard_at).total_seconds():.0f} s")


def _lose_to_a_namesake(turn: Turn, event: NodeConnected, heard_at: datetime) -> None:
    """The machine that had the name before may be cut off and still run what it had."""
    reported = {report.execution for report in event.reports}
    for name in [planned.id for planned in turn.cluster.load.planned(event.node) if planned.id not in reported]:
        execution = turn.cluster.executions[name]
        if execution.state not in {State.PLACED, State.PREPARING}:
            _lose(turn, execution, heard_at, "another machine has joined as its node")


def _lose(turn: Turn, execution: Execution, heard_at: datetime, message: str) -> None:
    silent_until = heard_at + turn.cluster.jobs[execution.job].spec.timeouts.lost_after
    failure = Failure(kind=FailureKind.NODE_LOST, message=message)
    attempts.lose(turn, replace(execution, silent_until=silent_until), failure)


def remove(turn: Turn, event: RemovalRequested) -> Answer:
    """Forget a node that is not there; what it ran is lost, and counts as ended."""
    presence = turn.cluster.presence.get(event.node)
    if presence is None:
        message = f"there is no node {event.node!r}; `muster nodes` lists them"
        return Refused(cause=RefusalCause.UNKNOWN, message=message)
    if presence.session is not None:
        message = f"node {event.node} is connected; stop its agent first (what runs there would run on)"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    failure = Failure(kind=FailureKind.NODE_LOST, message="its node was removed by an operator")
    for member in list(_live_members(turn.cluster, event.node)):
        turn.put(replace(member, surely_over=True))
    for name in [planned.id for planned in turn.cluster.load.planned(event.node)]:
        attempts.lose(turn, turn.cluster.executions[name], failure)
        turn.put(replace(turn.cluster.executions[name], log_complete=True))  # as complete as it will ever be
    storing.lose_for_good(turn, event.node, "its node was removed by an operator")
    notice_node(turn, event.node, NodeEventKind.REMOVED)
    turn.forget(turn.cluster.nodes[event.node])
    return Noted()


def _live_members(cluster: Cluster, node: NodeId) -> Iterator[Execution]:
    """The executions on a node of attempts that have not ended, lost ones too."""
    for job in cluster.jobs.values():
        if job.ended_at is None:
            yield from (member for member in cluster.gangs.members(job.attempt_id) if member.node == node)


def _unwanted(turn: Turn, event: NodeConnected) -> set[ExecutionId]:
    """Executions that the node runs although nobody wants them."""
    live = (report.execution for report in event.reports if report.stage not in reports.ENDED_STAGES)
    return {execution for execution in live if not _wanted(turn, event.node, execution)}


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
        peer_port=event.peer_port,
        features=event.features,
        cordon=known.cordon if known is not None else None,
        taints=known.taints if known is not None else (),
    )


def _miss_executions(turn: Turn, event: NodeConnected) -> None:
    """Executions that had got somewhere and that the agent does not know any more cannot be brought back."""
    reported = {report.execution for report in event.reports}
    for planned in list(turn.cluster.load.planned(event.node)):
        execution = turn.cluster.executions.get(planned.id)
        if execution is None or execution.id in reported:
            continue
        if execution.state in TERMINAL:
            turn.put(complete := replace(execution, log_complete=True))
            storing.give_up(turn, complete, OutputsStage.LOST, storing.NOT_THERE_ANY_MORE)
        elif execution.state is State.STOPPING:
            attempts.confirm_stop(turn, replace(execution, last_permit_at=turn.now))
        elif execution.state not in {State.PLACED, State.PREPARING}:
            message = "the agent restarted and does not have the execution any more"
            failure = Failure(kind=FailureKind.AGENT_RESTARTED, message=message)
            attempts.fail(turn, replace(execution, last_permit_at=turn.now), failure)
