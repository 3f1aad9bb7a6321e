"""Values of model.proto: what coordinator, agents and clients all exchange."""

from muster.domain.ids import NodeId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.member import PortLease
from muster.domain.jobs.restart import MAX_EXIT_CODE
from muster.rpc.v1 import model_pb2 as pb
from muster.wire import checks


def port_lease_to_wire(lease: PortLease) -> pb.PortLease:
    """A port of an execution."""
    return pb.PortLease(name=lease.name, host_port=lease.host_port, container_port=lease.container_port)


def port_lease_from_wire(message: pb.PortLease) -> PortLease:
    """A port of an execution; raises WireError."""
    return PortLease(
        name=checks.port_name(message.name, "PortLease.name"),
        host_port=checks.port(message.host_port, "PortLease.host_port"),
        container_port=checks.port(message.container_port, "PortLease.container_port"),
    )


def exit_to_wire(ended: Exit) -> pb.Exit:
    """How user code ended."""
    return pb.Exit(code=ended.code, out_of_memory=ended.out_of_memory)


def exit_from_wire(message: pb.Exit) -> Exit:
    """How user code ended; raises WireError."""
    return Exit(code=checks.between(message.code, 0, MAX_EXIT_CODE, "Exit.code"), out_of_memory=message.out_of_memory)


def failure_to_wire(failure: Failure) -> pb.Failure:
    """Why an execution failed."""
    return pb.Failure(
        kind=failure.kind,
        message=failure.message,
        rank=failure.rank,
        node=failure.node or "",
        exit=None if failure.exit is None else exit_to_wire(failure.exit),
        log_tail=failure.log_tail,
    )


def failure_from_wire(message: pb.Failure) -> Failure:
    """Why an execution failed; raises WireError."""
    return Failure(
        kind=checks.word(FailureKind, message.kind, "Failure.kind"),
        message=checks.message(message.message),
        rank=checks.between(message.rank, 0, checks.MAX_SIZE - 1, "Failure.rank") if message.HasField("rank") else None,
        node=NodeId(checks.identifier(message.node, "Failure.node")) if message.node else None,
        exit=exit_from_wire(message.exit) if message.HasField("exit") else None,
        log_tail=tuple(map(checks.message, message.log_tail[-checks.MAX_TAIL :])),
    )
