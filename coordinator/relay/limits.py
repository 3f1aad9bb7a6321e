"""How much the relay takes from whoever knocks: in gRPC itself, before a ticket is read."""

from collections.abc import Sequence

from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA
from muster.rpc.channel import RELAY_CHANNEL_OPTIONS, SERVER_OPTIONS
from muster.trust.tickets import LONGEST_TICKET_TEXT

RELAY_CONNECTIONS = 8_192
"""Connections at once: one of each agent that has attachments, and one of each client."""

RELAY_MESSAGE = LARGEST_CHANNEL_DATA + 64 * 1024
"""Bytes of one message: a frame with the most data that there may be, and what goes with it."""

RELAY_METADATA = LONGEST_TICKET_TEXT + 2 * 1024
"""Bytes that go with a call beside its frames, at most twice as many are read."""

RELAY_HANDSHAKE = 10
"""Seconds in which TLS and HTTP/2 must be agreed upon."""

RELAY_IDLE = 600
"""Seconds without a stream after which a connection is closed."""

_SHARED = ("grpc.http2.bdp_probe", "grpc.http2.lookahead_bytes")

RELAY_SERVER_OPTIONS: Sequence[tuple[str, int]] = tuple(
    {
        # Nothing is compressed: what unfolds would be large before anybody has looked at it.
        "grpc.compression_enabled_algorithms_bitset": 1,
        **dict(SERVER_OPTIONS),
        **{name: value for name, value in RELAY_CHANNEL_OPTIONS if name in _SHARED},
        "grpc.max_receive_message_length": RELAY_MESSAGE,
        "grpc.max_send_message_length": RELAY_MESSAGE,
        "grpc.max_metadata_size": RELAY_METADATA,
        "grpc.absolute_max_metadata_size": 2 * RELAY_METADATA,
        "grpc.max_allowed_incoming_connections": RELAY_CONNECTIONS,
        "grpc.max_connection_idle_ms": RELAY_IDLE * 1000,
        "grpc.server_handshake_timeout_ms": RELAY_HANDSHAKE * 1000,
        "grpc.http2.settings_timeout": RELAY_HANDSHAKE * 1000,
    }.items()
)
"""Options of the relay's server."""
