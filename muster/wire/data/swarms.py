"""Swarms on the wire: which nodes fetch the same, and the key with which they know each other."""

from muster.domain.data.sharing.swarm_pass import SWARM_KEY_BYTES, SwarmMember, SwarmPass
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError

MOST_MEMBERS = 64
"""Nodes of one swarm."""


def swarm_pass_to_wire(given: SwarmPass) -> pb.SwarmResponse:
    """A swarm as one of its nodes is told of it."""
    return pb.SwarmResponse(
        key=given.key, members=[pb.Witness(node=each.node, address=each.address) for each in given.members]
    )


def swarm_pass_from_wire(message: pb.SwarmResponse) -> SwarmPass:
    """The same as a node reads it; raises WireError."""
    if len(message.members) > MOST_MEMBERS:
        raise WireError("SwarmResponse.members", f"are more than {MOST_MEMBERS}")
    if message.members and len(message.key) != SWARM_KEY_BYTES:
        raise WireError("SwarmResponse.key", f"does not have {SWARM_KEY_BYTES} bytes")
    members = tuple(
        SwarmMember(
            node=checks.identifier(each.node, "SwarmResponse.members.node"),
            address=checks.plain(each.address, "SwarmResponse.members.address"),
        )
        for each in message.members
    )
    return SwarmPass(key=message.key, members=members)
