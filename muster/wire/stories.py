"""Values of nodes.proto and fleet.proto: what happened to a node or to the fleet."""

from muster.domain.event import FleetEvent, FleetEventKind, NodeEvent, NodeEventKind
from muster.domain.ids import NodeId
from muster.rpc.v1 import fleet_pb2, nodes_pb2
from muster.wire import checks


def node_event_to_wire(event: NodeEvent) -> nodes_pb2.NodeEvent:
    """Something that happened to a node."""
    return nodes_pb2.NodeEvent(
        number=event.number,
        node=event.node,
        kind=event.kind,
        at=checks.timestamp(event.at),
        text=event.text,
        by=event.by,
        cause=event.cause,
    )


def node_event_from_wire(message: nodes_pb2.NodeEvent) -> NodeEvent:
    """Something that happened to a node; raises WireError."""
    checks.require(message, "at")
    return NodeEvent(
        number=checks.between(message.number, 0, checks.MAX_BYTES, "NodeEvent.number"),
        node=NodeId(checks.identifier(message.node, "NodeEvent.node")),
        kind=checks.word(NodeEventKind, message.kind, "NodeEvent.kind"),
        at=checks.moment(message.at, "NodeEvent.at"),
        text=checks.message(message.text),
        by=checks.text(message.by, "NodeEvent.by"),
        cause=checks.text(message.cause, "NodeEvent.cause"),
    )


def fleet_event_to_wire(event: FleetEvent) -> fleet_pb2.FleetEvent:
    """Something that happened to the fleet."""
    return fleet_pb2.FleetEvent(
        number=event.number,
        kind=event.kind,
        at=checks.timestamp(event.at),
        project=event.project,
        text=event.text,
        by=event.by,
        cause=event.cause,
    )


def fleet_event_from_wire(message: fleet_pb2.FleetEvent) -> FleetEvent:
    """Something that happened to the fleet; raises WireError."""
    checks.require(message, "at")
    return FleetEvent(
        number=checks.between(message.number, 0, checks.MAX_BYTES, "FleetEvent.number"),
        kind=checks.word(FleetEventKind, message.kind, "FleetEvent.kind"),
        at=checks.moment(message.at, "FleetEvent.at"),
        project=checks.text(message.project, "FleetEvent.project"),
        text=checks.message(message.text),
        by=checks.text(message.by, "FleetEvent.by"),
        cause=checks.text(message.cause, "FleetEvent.cause"),
    )
