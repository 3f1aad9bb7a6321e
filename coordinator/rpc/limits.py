"""How much each door takes from whoever knocks; all of it holds before anybody is known, in gRPC itself.

`muster up` has one door, which only this machine reaches: it has the limits of `muster.rpc.channel.SERVER_OPTIONS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.rpc.channel import AGENT_LINK, MAX_REQUEST, SERVER_OPTIONS, STREAMS

CLIENT_MESSAGE = 6 * 1024 * 1024
"""Bytes of one message of a client: a job of 4 MiB, and one that is somewhat too large and is told so."""
AGENT_STREAMS = 100
"""Calls of one agent at once: two streams, and one question for each execution that starts."""
CLIENT_CONNECTIONS = 4_096
AGENT_CONNECTIONS = 25_000
"""For 10,000 nodes that come back before their old connections are noticed to be dead."""
CLIENT_CALLS = 10_000
AGENT_CALLS = 50_000
"""Calls that are being answered, streams included."""
METADATA = 8 * 1024
"""Bytes that go with a call beside its message, at most twice as many are read; a token has 90."""
CLIENT_IDLE = 1_800
"""Seconds without a call after which a client's connection is closed; his next call opens another."""
CLIENT_HANDSHAKE = 10
AGENT_RECORD = 4 * 1024
"""Bytes of one TLS record to an agent; each connection has a buffer for one, and gRPC would make it 16 KiB."""
AGENT_HANDSHAKE = 20
"""Seconds in which TLS and HTTP/2 must be agreed upon; a whole fleet may come back at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What goes through one door."""

    calls: int
    options: Sequence[tuple[str, int]]


def _door(calls: int, options: Mapping[str, int]) -> Door:
    common = {
        "grpc.max_metadata_size": METADATA,
        "grpc.absolute_max_metadata_size": 2 * METADATA,
    }
    return Door(calls=calls, options=tuple({**dict(SERVER_OPTIONS), **common, **options}.items()))


CLIENTS = _door(
    CLIENT_CALLS,
    {
        "grpc.max_receive_message_length": CLIENT_MESSAGE,
        "grpc.max_concurrent_streams": STREAMS,
        "grpc.max_allowed_incoming_connections": CLIENT_CONNECTIONS,
        "grpc.max_connection_idle_ms": CLIENT_IDLE * 1000,
        "grpc.server_handshake_timeout_ms": CLIENT_HANDSHAKE * 1000,
        "grpc.http2.settings_timeout": CLIENT_HANDSHAKE * 1000,
    },
)
AGENTS = _door(
    AGENT_CALLS,
    {
        "grpc.max_receive_message_length": MAX_REQUEST,
        "grpc.max_concurrent_streams": AGENT_STREAMS,
        "grpc.max_allowed_incoming_connections": AGENT_CONNECTIONS,
        "grpc.server_handshake_timeout_ms": AGENT_HANDSHAKE * 1000,
        "grpc.tsi.max_frame_size": AGENT_RECORD,
        "grpc.http2.settings_timeout": AGENT_HANDSHAKE * 1000,
        **AGENT_LINK,
    },
)
LOCAL = Door(calls=CLIENT_CALLS, options=SERVER_OPTIONS)
