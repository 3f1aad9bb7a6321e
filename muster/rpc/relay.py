"""What both sides of an attachment and the relay agree on beside the frames: metadata, endings, channel options."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import grpc

from muster.rpc.channel import AGENT_LINK, CHANNEL_OPTIONS

TICKET_METADATA = "muster-ticket"
"""The metadata with which a side shows its ticket."""

ENDING_METADATA = "muster-ending"
"""The trailing metadata with which the relay says how a stream ended, as a word of RelayEnding."""

CARRY_METHOD = "/muster.rpc.v1.RelayService/Carry"
"""The call of both sides."""

RELAY_MESSAGE = 320 * 1024
"""Bytes of one message through the relay: a frame with the most data that there may be, and what goes with it."""


class RelayEnding(StrEnum):
    """How a stream at the relay ends, where it is not the side itself that breaks it off."""

    ENDED = "ended"  #: the other side has ended its stream in order; all that it said has come
    BROKEN = "broken"  #: the other side's stream is gone, or a newer one took its place: come again
    ALONE = "alone"  #: the other side did not come in time: come again
    STOPPING = "stopping"  #: the relay stops: come again
    REPLACED = "replaced"  #: a newer stream of the same side has come
    CLOSED = "closed"  #: the attachment is closed, and its tickets are worth nothing any more
    REFUSED = "refused"  #: the ticket is missing, not of this fleet, or too old
    FULL = "full"  #: the relay carries as many streams as it may: come again later


RELAY_STATUS: Mapping[RelayEnding, grpc.StatusCode] = {
    RelayEnding.ENDED: grpc.StatusCode.OK,
    RelayEnding.BROKEN: grpc.StatusCode.UNAVAILABLE,
    RelayEnding.ALONE: grpc.StatusCode.UNAVAILABLE,
    RelayEnding.STOPPING: grpc.StatusCode.UNAVAILABLE,
    RelayEnding.REPLACED: grpc.StatusCode.ABORTED,
    RelayEnding.CLOSED: grpc.StatusCode.PERMISSION_DENIED,
    RelayEnding.REFUSED: grpc.StatusCode.UNAUTHENTICATED,
    RelayEnding.FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""The status with which each of them ends the call; only UNAVAILABLE is a reason to come again at once."""

RELAY_CHANNEL_OPTIONS: Sequence[tuple[str, int]] = tuple(
    {
        **dict(CHANNEL_OPTIONS),
        # What may be under way to a side that does not read; gRPC would take many MiB for each attachment.
        "grpc.http2.bdp_probe": AGENT_LINK["grpc.http2.bdp_probe"],
        "grpc.http2.lookahead_bytes": AGENT_LINK["grpc.http2.lookahead_bytes"],
        "grpc.max_receive_message_length": RELAY_MESSAGE,
        "grpc.max_send_message_length": RELAY_MESSAGE,
    }.items()
)
"""Options of clients and agents that dial the relay."""
