"""What both sides of an attachment and the relay agree on beside the frames: metadata and endings."""

from collections.abc import Mapping
from enum import StrEnum

import grpc

TICKET_METADATA = "muster-ticket"
"""The metadata with which a side shows its ticket."""

ENDING_METADATA = "muster-ending"
"""The trailing metadata with which the relay says how a stream ended, as a word of RelayEnding."""

CARRY_METHOD = "/muster.rpc.v1.RelayService/Carry"
"""The call of both sides."""


class RelayEnding(StrEnum):
    """How a stream at the relay ends, where it is not the side itself that breaks it off."""

    ENDED = "ended"  #: the side has ended its stream in order
    BROKEN = "broken"  #: the other side's stream has ended, and all that it said has come: come again
    ALONE = "alone"  #: the other side did not come in time
    STOPPING = "stopping"  #: the relay stops: come again
    REPLACED = "replaced"  #: a newer stream of the same side has come
    CLOSED = "closed"  #: somebody has closed the attachment, or its account may attach no more
    LOST = "lost"  #: the attachment is over, and nobody has closed it: as its agent was restarted
    REFUSED = "refused"  #: the ticket is missing, not of this fleet, or too old
    FULL = "full"  #: the relay carries as many streams as it may: come again later


RELAY_STATUS: Mapping[RelayEnding, grpc.StatusCode] = {
    RelayEnding.ENDED: grpc.StatusCode.OK,
    RelayEnding.BROKEN: grpc.StatusCode.UNAVAILABLE,
    RelayEnding.ALONE: grpc.StatusCode.DEADLINE_EXCEEDED,
    RelayEnding.STOPPING: grpc.StatusCode.UNAVAILABLE,
    RelayEnding.REPLACED: grpc.StatusCode.ABORTED,
    RelayEnding.CLOSED: grpc.StatusCode.PERMISSION_DENIED,
    RelayEnding.LOST: grpc.StatusCode.FAILED_PRECONDITION,
    RelayEnding.REFUSED: grpc.StatusCode.UNAUTHENTICATED,
    RelayEnding.FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
"""The status with which each of them ends the call; UNAVAILABLE is a reason to come again at once.

DEADLINE_EXCEEDED is one, too, where the other side has been there before.
"""
