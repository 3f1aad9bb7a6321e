"""How much the depot takes and keeps, and from whoever knocks before a ticket is read."""

from collections.abc import Sequence

from muster.rpc.channel import SERVER_OPTIONS
from muster.trust.tickets import LONGEST_TICKET_TEXT

DEPOT_MESSAGE = 2 * 1024 * 1024
"""Bytes of one message: 1 MiB of data, and the names of as many small objects as that may be."""

DEPOT_DATA = 1024 * 1024
"""Bytes of data in one message."""

DEPOT_STREAMS = 256
"""Calls at once; further ones are told to come again."""

OBJECTS_ASKED_ABOUT = 10_000
"""Objects in one message."""

DEPOT_KEEPS_FREE = 10
"""Percent of the disk that are left free."""

COMMITTED_TOGETHER = 256
"""Objects that are brought to the disk at once."""

COMMITTED_BYTES = 16 * 1024 * 1024
"""Bytes of objects that are brought to the disk at once."""

DEPOT_CONNECTIONS = 8_192
"""Connections at once: one of each mover that fetches, and one of each client that sends."""

DEPOT_METADATA = LONGEST_TICKET_TEXT + 2 * 1024
"""Bytes that go with a call beside its messages, at most twice as many are read."""

DEPOT_HANDSHAKE = 10
"""Seconds in which TLS and HTTP/2 must be agreed upon."""

DEPOT_IDLE = 600
"""Seconds without a call after which a connection is closed."""

DEPOT_SERVER_OPTIONS: Sequence[tuple[str, int]] = tuple(
    {
        # Nothing is compressed: what unfolds would be large before anybody has looked at it.
        "grpc.compression_enabled_algorithms_bitset": 1,
        **dict(SERVER_OPTIONS),
        "grpc.max_receive_message_length": DEPOT_MESSAGE,
        "grpc.max_send_message_length": DEPOT_MESSAGE,
        "grpc.max_metadata_size": DEPOT_METADATA,
        "grpc.absolute_max_metadata_size": 2 * DEPOT_METADATA,
        "grpc.max_allowed_incoming_connections": DEPOT_CONNECTIONS,
        "grpc.max_connection_idle_ms": DEPOT_IDLE * 1000,
        "grpc.server_handshake_timeout_ms": DEPOT_HANDSHAKE * 1000,
        "grpc.http2.settings_timeout": DEPOT_HANDSHAKE * 1000,
    }.items()
)
"""Options of the depot's server."""
