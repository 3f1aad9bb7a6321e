"""Rosters as plans carry them: as bytes, made once for all agents of an attempt, compressed where they are large."""

import zlib
from collections import OrderedDict

from google.protobuf.message import DecodeError

from muster.domain.roster import Roster
from muster.rpc.v1 import model_pb2 as pb
from muster.wire.checks import WireError
from muster.wire.model import roster_from_wire, roster_to_wire

_PACKED = b"\x78"
"""With this zlib begins, and no roster, whose first field is a text."""
_WORTH_PACKING = 64 * 1024
_MOST_UNPACKED = 64 * 1024 * 1024
"""Bytes; as many as a message may have."""


class RosterBytes:
    """Rosters as they go over the wire: every agent of an attempt is sent the same bytes, so they are made once."""

    def __init__(self, kept: int = 100) -> None:
        self._kept = kept
        self._made: OrderedDict[int, tuple[Roster, bytes, bytes]] = OrderedDict()
        """By identity, which the roster kept beside them holds."""

    def plain(self, roster: Roster) -> bytes:
        """The members of an attempt."""
        return self._of(roster)[1]

    def packed(self, roster: Roster) -> bytes:
        """The members of an attempt, compressed if they are many."""
        return self._of(roster)[2]

    def _of(self, roster: Roster) -> tuple[Roster, bytes, bytes]:
        if id(roster) not in self._made:
            plain = roster_to_bytes(roster)
            packed = zlib.compress(plain, 1) if len(plain) >= _WORTH_PACKING else plain
            self._made[id(roster)] = (roster, plain, packed)
            if len(self._made) > self._kept:
                self._made.popitem(last=False)
        return self._made[id(roster)]


def roster_to_bytes(roster: Roster) -> bytes:
    """The members of an attempt, as plans carry them."""
    return roster_to_wire(roster).SerializeToString()


def roster_from_bytes(data: bytes) -> Roster:
    """The members of an attempt, as plans carry them; raises WireError."""
    try:
        return roster_from_wire(pb.Roster.FromString(_unpacked(data)))
    except (DecodeError, zlib.error) as error:
        raise WireError("Plan.rosters", f"holds what is no roster ({error})") from None


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(_PACKED):
        return data
    unpacking = zlib.decompressobj()
    plain = unpacking.decompress(data, _MOST_UNPACKED)
    if not unpacking.eof:
        raise WireError("Plan.rosters", f"is cut off, or more than {_MOST_UNPACKED} bytes")
    return plain
