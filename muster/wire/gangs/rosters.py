"""Rosters as plans carry them: as bytes, compressed where they are large."""

import re
import zlib

from google.protobuf.message import DecodeError

from muster.domain.gangs.roster import Roster
from muster.domain.ids import JobId
from muster.domain.jobs.job import Network
from muster.rpc.v1 import model_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError

_PACKED = b"\x78"
"""The byte with which zlib begins, and no roster, whose first field is a text."""
_WORTH_PACKING = 64 * 1024
_MOST_UNPACKED = 64 * 1024 * 1024
"""Bytes; as many as a message may have."""
_REST = 4096
"""Bytes of a roster beside its columns, generously."""


def _several(item: str, between: str) -> str:
    return f"{item}(?:{between}{item})*"


def _map(entry: str) -> str:
    return rf"\{{(?:{_several(entry, ', ')})?\}}"


class _Column:
    """What each line of a column is like; it is written into files as it is."""

    def __init__(self, line: str, says: str) -> None:
        self._lines = re.compile(_several(line, "\n"))
        self._says = f"must be a line of {says} for each member"

    def read(self, text: str, where: str) -> tuple[str, ...]:
        """A line for each member; looked at all together, which costs next to nothing."""
        if not self._lines.fullmatch(text):
            raise WireError(where, self._says)
        return tuple(text.split("\n"))


_WORDS = _Column(r"[A-Za-z0-9_.:%-]+", "letters, digits and -_.:%")
_PORTS = _Column(_map(r'"[a-z0-9_-]+": \d{1,5}'), "names and ports in JSON")
_EXPOSED = _Column(_map(r'"\d{1,5}": "\d{1,5}"'), "ports and ports in JSON")
_NUMBERS = _Column(r"\d{1,5}", "numbers of ports")
_GPUS = _Column(r'\[(?:"[^"\\\n\[\]{}][^\\\n\[\]{}]*")?\]', "UUIDs in JSON")


def roster_to_bytes(roster: Roster) -> bytes:
    """The members of an attempt, as plans carry them, compressed if they are many; raises WireError for too many."""
    columns = (
        roster.roles,
        roster.nodes,
        roster.addresses,
        roster.checked_in,
        roster.ports,
        roster.exposed,
        roster.gpus,
        roster.peer_ports,
    )
    size = sum(len(column) + sum(map(len, column)) for column in columns)
    if size > _MOST_UNPACKED - _REST:
        raise WireError("Roster", f"has {size} bytes, and {_MOST_UNPACKED - _REST} fit into a message to its nodes")
    return _packed(roster_to_wire(roster).SerializeToString())


def roster_from_bytes(data: bytes) -> Roster:
    """The members of an attempt, as plans carry them; raises WireError."""
    try:
        return roster_from_wire(pb.Roster.FromString(_unpacked(data)))
    except (DecodeError, zlib.error) as error:
        raise WireError("Plan.rosters", f"holds what is no roster ({error})") from None


def roster_to_wire(roster: Roster) -> pb.Roster:
    """The members of an attempt, as a table."""
    return pb.Roster(
        job=roster.job,
        job_name=roster.job_name,
        attempt=roster.attempt,
        network=roster.network,
        roles="\n".join(roster.roles),
        nodes="\n".join(roster.nodes),
        addresses="\n".join(roster.addresses),
        checked_in="\n".join(roster.checked_in),
        ports="\n".join(roster.ports),
        exposed="\n".join(roster.exposed),
        gpus="\n".join(roster.gpus),
        peer_ports="\n".join(roster.peer_ports),
    )


def roster_from_wire(message: pb.Roster) -> Roster:
    """The members of an attempt from a table; raises WireError."""
    roster = Roster(
        job=JobId(checks.identifier(message.job, "Roster.job")),
        job_name=checks.label(message.job_name, "Roster.job_name"),
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "Roster.attempt"),
        network=checks.word(Network, message.network, "Roster.network"),
        roles=_WORDS.read(message.roles, "Roster.roles"),
        nodes=_WORDS.read(message.nodes, "Roster.nodes"),
        addresses=_WORDS.read(message.addresses, "Roster.addresses"),
        checked_in=_WORDS.read(message.checked_in, "Roster.checked_in"),
        ports=_PORTS.read(message.ports, "Roster.ports"),
        exposed=_EXPOSED.read(message.exposed, "Roster.exposed"),
        gpus=_GPUS.read(message.gpus, "Roster.gpus"),
        peer_ports=_peer_ports(message),
    )
    size = checks.between(len(roster.nodes), 1, checks.MAX_SIZE, "Roster.nodes")
    columns = (roster.roles, roster.addresses, roster.checked_in, roster.ports, roster.exposed, roster.gpus)
    if any(len(column) != size for column in (*columns, roster.peer_ports)):
        raise WireError("Roster.nodes", f"has {size} lines, and not all others have as many")
    return roster


def _peer_ports(message: pb.Roster) -> tuple[str, ...]:
    """A coordinator that is older than commands between nodes does not tell them."""
    if not message.peer_ports:
        return ("0",) * (message.nodes.count("\n") + 1)
    return _NUMBERS.read(message.peer_ports, "Roster.peer_ports")


def _packed(data: bytes) -> bytes:
    return zlib.compress(data, 1) if len(data) >= _WORTH_PACKING else data


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(_PACKED):
        return data
    unpacking = zlib.decompressobj()
    plain = unpacking.decompress(data, _MOST_UNPACKED)
    if not unpacking.eof:
        raise WireError("Plan.rosters", f"is cut off, or more than {_MOST_UNPACKED} bytes")
    return plain
