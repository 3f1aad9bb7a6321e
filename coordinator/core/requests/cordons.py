"""Nodes that take nothing new: for maintenance, or because an operator does not trust them."""

from dataclasses import replace

from coordinator.core.answers import Answer, Noted, RefusalCause, Refused
from coordinator.core.attempts import attempts
from coordinator.core.events import CordonRequested, UncordonRequested
from coordinator.core.turn.notices import notice_node
from coordinator.core.turn.turn import Turn
from muster.domain.event import NodeEventKind
from muster.domain.fleet.node import Cordon
from muster.domain.ids import NodeId


def take(turn: Turn, event: CordonRequested | UncordonRequested) -> Answer:
    """Cordon a node, or have it take jobs again; saying it twice changes nothing."""
    node = turn.cluster.nodes.get(event.node)
    if node is None:
        message = f"there is no node {event.node!r}; `muster nodes` lists them"
        return Refused(cause=RefusalCause.UNKNOWN, message=message)
    if isinstance(event, CordonRequested):
        if node.cordon is None:
            notice_node(turn, node.name, NodeEventKind.CORDONED, event.reason)
        turn.put(replace(node, cordon=_cordon(turn, node.cordon, event)))
        if event.restart_jobs:
            _move_jobs_away(turn, event.node)
    elif node.cordon is not None:
        notice_node(turn, node.name, NodeEventKind.UNCORDONED)
        turn.put(replace(node, cordon=None))
    turn.reconsider_queue()
    return Noted()


def notice_drained(turn: Turn) -> None:
    """Note of cordoned nodes that nothing runs there any more, once for each cordon."""
    for node in turn.cluster.draining.take_drained():
        notice_node(turn, node, NodeEventKind.DRAINED)


def _cordon(turn: Turn, before: Cordon | None, event: CordonRequested) -> Cordon:
    """The one that stands, with the newer reason if there is one."""
    if before is None:
        return Cordon(since=turn.now, reason=event.reason)
    return replace(before, reason=event.reason or before.reason)


def _move_jobs_away(turn: Turn, node: NodeId) -> None:
    """Only what holds something there: an execution that has ended is no reason to start again."""
    executions = sorted(turn.cluster.load.used(node).executions)
    if executions:
        notice_node(turn, node, NodeEventKind.DRAINING)
    for execution in executions:
        attempts.move_away(turn, turn.cluster.executions[execution])
