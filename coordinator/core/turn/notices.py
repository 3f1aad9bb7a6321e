"""What happened to a node or to the fleet, noted under the cause of the event that is being taken in."""

from coordinator.core.turn.turn import Turn
from muster.domain.event import FleetEvent, FleetEventKind, NodeEvent, NodeEventKind
from muster.domain.ids import NodeId


def notice_node(turn: Turn, node: NodeId, kind: NodeEventKind, text: str = "") -> None:
    """Note that something happened to a node."""
    what, who = turn.notes.cause
    turn.notice(NodeEvent(node=node, kind=kind, at=turn.now, text=text, by=who, cause=what))


def notice_fleet(turn: Turn, kind: FleetEventKind, *, project: str = "", text: str = "") -> None:
    """Note that something happened to the fleet, or to a project of it."""
    what, who = turn.notes.cause
    turn.notice(FleetEvent(kind=kind, at=turn.now, project=project, text=text, by=who, cause=what))
