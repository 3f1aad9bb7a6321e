"""What keeps executions of two attempts apart, on the wire."""

from muster.domain.gangs.fence import Fence, Witness
from muster.domain.ids import NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire import checks


def fence_to_wire(fence: Fence) -> pb.Fence:
    """What keeps an execution from running beside a later attempt."""
    return pb.Fence(
        lost_after=checks.duration(fence.lost_after),
        on_disconnect=fence.on_disconnect,
        key=fence.key,
        witnesses=[pb.Witness(node=witness.node, address=witness.address) for witness in fence.witnesses],
    )


def fence_from_wire(message: pb.Fence) -> Fence:
    """The same from a plan; raises WireError."""
    checks.require(message, "lost_after")
    return Fence(
        lost_after=checks.span(message.lost_after, "Fence.lost_after"),
        on_disconnect=checks.word(OnDisconnect, message.on_disconnect, "Fence.on_disconnect"),
        key=message.key,
        witnesses=tuple(
            Witness(node=NodeId(checks.identifier(witness.node, "Witness.node")), address=witness.address)
            for witness in message.witnesses
        ),
    )
