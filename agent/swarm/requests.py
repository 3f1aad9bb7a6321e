"""Questions for pieces: what is signed, so that only nodes that may have some contents get them from each other."""

from muster.rpc.v1 import agents_pb2 as pb
from muster.trust.attempt_signature import attempt_signature

PIECE_WORD = 1.0
"""Seconds between two words of a node that has not got a piece yet."""
PIECE_MESSAGE = 256 * 1024
"""Bytes of a piece in one message."""


def piece_signature(key: bytes, request: pb.PieceRequest, asked: str) -> bytes:
    """What shows that a question is of the swarm, and for that node."""
    return attempt_signature(
        key,
        "piece",
        request.job,
        str(request.attempt),
        request.node,
        asked,
        request.contents,
        str(request.piece),
        str(int(request.which)),
        *request.cut_off,
    )
