"""How much each door takes from whoever knocks: in gRPC itself, before anybody is known, and at admission.

`muster up` has one door, which only this machine reaches: gRPC has `muster.rpc.channel.SERVER_OPTIONS` there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.rpc.admission.open_calls import Bounds, Share
from coordinator.rpc.admission.turns import Reading
from muster.rpc.channel import AGENT_LINK, MAX_REQUEST, SERVER_OPTIONS, STREAMS

CLIENT_MESSAGE = 6 * 1024 * 1024
"""Bytes of one message of a client: a job of 4 MiB, and one that is somewhat too large and is told so."""
AGENT_STREAMS = 100
"""Calls of one agent at once: two streams, and one question for each execution that starts."""
CLIENT_CONNECTIONS = 4_096
AGENT_CONNECTIONS = 25_000
"""Most connections of agents: enough for 10,000 nodes that come back before their old ones are noticed to be dead."""
CLIENT_CALLS = 10_000
AGENT_CALLS = 50_000
"""Calls of all who are known that are being answered, streams included."""
ADMIN_CALLS = 200
"""Client calls among them that only admins can open, so that an admin always gets in."""
ACCOUNT_CALLS = 2_000
ACCOUNT_STREAMS = 1_900
"""Calls of one account that are being answered, and streams among them."""
NODE_CALLS = 200
NODE_STREAMS = 32
"""The same of one node; a node that reconnects has old streams beside the new ones for some seconds."""
STRANGERS_CALLS = 2_048
STRANGER_CALLS = 1_024
"""Calls without a login that are being answered, in all and from one address."""
STREAMS_OF_STRANGERS = 1_000
STREAMS_OF_ONE_STRANGER = 16
"""Streams among them."""
CLIENTS_UNDER_WAY = 192 * 1024 * 1024
ACCOUNT_UNDER_WAY = 48 * 1024 * 1024
AGENTS_UNDER_WAY = 256 * 1024 * 1024
NODE_UNDER_WAY = 32 * 1024 * 1024
STRANGERS_UNDER_WAY = 24 * 1024 * 1024
STRANGER_UNDER_WAY = 12 * 1024 * 1024
"""Bytes of messages that are arriving, in all and of one caller; each counts as the largest that there may be."""
MESSAGE_WITHIN = 60
"""Seconds in which the message of a call must arrive once it is being read: 4 MiB over a slow line."""
STRANGERS_MESSAGE_WITHIN = 2
STRANGERS_HURRY = 0.25
"""The same for a stranger, and while other strangers wait; a message travels with the head of its call as a rule."""
STRANGERS_LINE = 10
"""Seconds for which a stranger waits for the turn."""
UNREAD = 16 * 1024
"""Bytes of a call that a client may send before anybody reads its message."""
_IDENTITY_ALONE = 1
"""The bit of messages that are not compressed."""
METADATA = 8 * 1024
"""Bytes that go with a call beside its message, at most twice as many are read; a token has 90."""
CLIENT_IDLE = 1_800
"""Seconds without a call after which a client's connection is closed; the next call opens another."""
CLIENT_HANDSHAKE = 10
AGENT_RECORD = 4 * 1024
"""Bytes of one TLS record to an agent; each connection has a buffer for one, and gRPC would make it 16 KiB."""
AGENT_HANDSHAKE = 20
"""Seconds in which TLS and HTTP/2 must be agreed upon; a whole fleet may come back at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What goes through one door."""

    bounds: Bounds
    known: Reading
    strangers: Reading
    options: Sequence[tuple[str, int]]


def _door(calls: int, admins: int, under_way: tuple[int, int], options: Mapping[str, int]) -> Door:
    every = {
        # Nothing of ours is compressed, and what unfolds would be large before anybody has looked at it.
        "grpc.compression_enabled_algorithms_bitset": _IDENTITY_ALONE,
        **dict(SERVER_OPTIONS),
        **options,
    }
    largest, (in_all, each) = every["grpc.max_receive_message_length"], under_way
    return Door(
        bounds=Bounds(
            known=calls,
            admins=admins,
            account=Share(calls=ACCOUNT_CALLS, streams=ACCOUNT_STREAMS),
            node=Share(calls=NODE_CALLS, streams=NODE_STREAMS),
            strangers=Share(calls=STRANGERS_CALLS, streams=STREAMS_OF_STRANGERS),
            stranger=Share(calls=STRANGER_CALLS, streams=STREAMS_OF_ONE_STRANGER),
        ),
        known=Reading(at_once=in_all // largest, each=each // largest, within=MESSAGE_WITHIN),
        strangers=Reading(
            at_once=max(1, STRANGERS_UNDER_WAY // largest),
            each=max(1, STRANGER_UNDER_WAY // largest),
            within=STRANGERS_MESSAGE_WITHIN,
            hurried=STRANGERS_HURRY,
            line=STRANGERS_LINE,
        ),
        options=tuple(every.items()),
    )


_KNOCKED_AT = {
    "grpc.max_metadata_size": METADATA,
    "grpc.absolute_max_metadata_size": 2 * METADATA,
}


CLIENTS = _door(
    CLIENT_CALLS,
    ADMIN_CALLS,
    (CLIENTS_UNDER_WAY, ACCOUNT_UNDER_WAY),
    {
        **_KNOCKED_AT,
        "grpc.max_receive_message_length": CLIENT_MESSAGE,
        "grpc.max_concurrent_streams": STREAMS,
        "grpc.max_allowed_incoming_connections": CLIENT_CONNECTIONS,
        "grpc.max_connection_idle_ms": CLIENT_IDLE * 1000,
        "grpc.server_handshake_timeout_ms": CLIENT_HANDSHAKE * 1000,
        "grpc.http2.settings_timeout": CLIENT_HANDSHAKE * 1000,
        # Otherwise gRPC takes up to 4 MiB of each call that nobody reads.
        "grpc.http2.bdp_probe": 0,
        "grpc.http2.lookahead_bytes": UNREAD,
    },
)
AGENTS = _door(
    AGENT_CALLS,
    0,
    (AGENTS_UNDER_WAY, NODE_UNDER_WAY),
    {
        **_KNOCKED_AT,
        "grpc.max_receive_message_length": MAX_REQUEST,
        "grpc.max_concurrent_streams": AGENT_STREAMS,
        "grpc.max_allowed_incoming_connections": AGENT_CONNECTIONS,
        "grpc.server_handshake_timeout_ms": AGENT_HANDSHAKE * 1000,
        "grpc.tsi.max_frame_size": AGENT_RECORD,
        "grpc.http2.settings_timeout": AGENT_HANDSHAKE * 1000,
        **AGENT_LINK,
    },
)
LOCAL_DOOR = _door(CLIENT_CALLS, 0, (AGENTS_UNDER_WAY, AGENTS_UNDER_WAY), {})
