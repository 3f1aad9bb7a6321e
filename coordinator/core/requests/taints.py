"""Taints of nodes: given and taken away, and what they end."""

from dataclasses import replace

from coordinator.core.answers import Answer, Noted, RefusalCause, Refused
from coordinator.core.attempts import attempts
from coordinator.core.events import TaintsRequested
from coordinator.core.records import Node
from coordinator.core.turn.notices import notice_node
from coordinator.core.turn.turn import Turn
from muster.domain.event import NodeEventKind
from muster.domain.gangs.plan import Goal
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.taint import MOST_TAINTS, NodeTaint, Taint, ends_at
from muster.domain.jobs.placing.toleration import TaintEffect


def take(turn: Turn, event: TaintsRequested) -> Answer:
    """Change the taints of a node; a taint that it has already, as it is asked for, stays since it was given."""
    node = turn.cluster.nodes.get(event.node)
    if node is None:
        message = f"there is no node {event.node!r}; `muster nodes` lists them"
        return Refused(cause=RefusalCause.UNKNOWN, message=message)
    taints = _taints_after(turn, node, event)
    if len(taints) > MOST_TAINTS:
        message = f"node {node.name} would have {len(taints)} taints; {MOST_TAINTS} are the most"
        return Refused(cause=RefusalCause.INVALID, message=message)
    if taints != node.taints:
        told = ", ".join(str(each.taint) for each in taints) or "none"
        notice_node(turn, node.name, NodeEventKind.TAINTED, told)
        turn.put(replace(node, taints=taints))
        judge(turn, node.name)
        turn.reconsider_queue()
    return Noted()


def judge(turn: Turn, name: NodeId) -> None:
    """Have what a node runs begin anew elsewhere if a taint says that its time is over; look again at the next one."""
    node = turn.cluster.nodes.get(name)
    if node is None or all(each.taint.effect is not TaintEffect.NO_EXECUTE for each in node.taints):
        return
    noticed = False
    for execution in sorted(turn.cluster.load.used(name).executions):
        running = turn.cluster.executions[execution]
        tolerations = turn.cluster.jobs[running.job].spec.tolerations
        ends = [(at, each.taint) for each in node.taints if (at := ends_at(each, tolerations)) is not None]
        if not ends or turn.cluster.attempts[running.attempt_id].goal is Goal.STOP:
            continue
        at, taint = min(ends)
        if at > turn.now:
            turn.cluster.deadlines.watch_taints(name, at)
            continue
        if not noticed:
            notice_node(turn, name, NodeEventKind.DRAINING, f"taint {taint}")
            noticed = True
        attempts.move_away(turn, running, f"its node has the taint {taint}")


def _taints_after(turn: Turn, node: Node, event: TaintsRequested) -> tuple[NodeTaint, ...]:
    """What a node has once the event is taken in, by key and effect."""
    left = (each for each in node.taints if not any(name.names(each.taint) for name in event.removed))
    taints = {(each.taint.key, each.taint.effect): each for each in left}
    for taint in event.given:
        given = _given(turn, taint, event)
        before = next((each for each in node.taints if (each.taint, each.after) == (taint, given.after)), None)
        taints[(taint.key, taint.effect)] = before or given
    return tuple(taints[name] for name in sorted(taints))


def _given(turn: Turn, taint: Taint, event: TaintsRequested) -> NodeTaint:
    if taint.effect is TaintEffect.NO_EXECUTE:
        return NodeTaint(taint=taint, since=turn.now, after=event.after)
    return NodeTaint(taint=taint, since=turn.now)
