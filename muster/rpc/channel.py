"""How both ends of every connection are set up: keepalive, message size, encryption."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio

from muster.domain.errors import MusterError, PermissionDeniedError

_MAX_MESSAGE = 64 * 1024 * 1024
"""Bytes that the coordinator may say at once: a plan with the rosters of very large jobs."""
MAX_REQUEST = 16 * 1024 * 1024
"""Bytes that may be said to it at once: the Hello of a node with hundreds of executions that failed."""
STREAMS = 1000
"""Most calls on one connection at once, streams included; gRPC refuses more."""
PENDING = 10_000
"""Most calls of all clients that wait for the coordinator to begin with them."""

_COMMON: Sequence[tuple[str, int]] = (
    # A half-open connection is noticed after 5 s of silence and 3 s without an answer to a ping.
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    # The one that counts where the kernel at the other end still takes bytes: a program that hangs, a proxy between.
    ("grpc.http2.ping_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_send_message_length", _MAX_MESSAGE),
)

CHANNEL_OPTIONS: Sequence[tuple[str, int]] = (
    *_COMMON,
    ("grpc.max_receive_message_length", _MAX_MESSAGE),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Despite its name: how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    # A refused attempt costs next to nothing, and a coordinator that is back wants its fleet.
    ("grpc.max_reconnect_backoff_ms", 500),
    # Two channels of one process to one coordinator never share a connection that one of them has broken.
    ("grpc.use_local_subchannel_pool", 1),
)
"""For whoever dials."""

SERVER_OPTIONS: Sequence[tuple[str, int]] = (
    *_COMMON,
    ("grpc.max_receive_message_length", MAX_REQUEST),
    ("grpc.max_concurrent_streams", STREAMS),
    # Calls that nobody has begun to answer; beyond that gRPC cancels them without a word.
    ("grpc.server.max_pending_requests", PENDING),
    ("grpc.server.max_pending_requests_hard_limit", 2 * PENDING),
    # Must not exceed the dialler's keepalive time, or the server closes with `too_many_pings`.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 4_000),
    # After a connection hung, the pings of that time come all at once; that is no reason to drop it.
    ("grpc.http2.max_ping_strikes", 0),
    # A second coordinator on the same address is refused instead of sharing it.
    ("grpc.so_reuseport", 0),
)
"""For whoever listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Files in PEM form with which a peer is believed, and believes."""

    ca: Path
    """Who signed the other side's certificate."""
    cert: Path | None = None
    """One's own certificate; None: one stays anonymous."""
    key: Path | None = None
    """The key of `cert`."""


def open_channel(address: str, credentials: Credentials | None = None, *, insecure: bool = False) -> grpc.aio.Channel:
    """A channel to `host:port`, not connected yet.

    Without credentials it is plain text, which is refused beyond this machine unless `insecure` says that the network
    is trusted.
    """
    if credentials is not None:
        return grpc.aio.secure_channel(address, _channel_credentials(credentials), CHANNEL_OPTIONS)
    if not insecure and not is_loopback(address):
        raise PermissionDeniedError(
            f"will not speak unencrypted to {address}, which is not this machine; give credentials, "
            "or say --insecure (MUSTER_INSECURE=1) if you trust the network between",
        )
    return grpc.aio.insecure_channel(address, CHANNEL_OPTIONS)


def is_loopback(address: str) -> bool:
    """Whether `host:port` can only be reached from this machine."""
    host = address.removeprefix("dns:///").rpartition(":")[0].strip("[]")
    if address.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _channel_credentials(credentials: Credentials) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=read_pem(credentials.ca),
        private_key=None if credentials.key is None else read_pem(credentials.key),
        certificate_chain=None if credentials.cert is None else read_pem(credentials.cert),
    )


def read_pem(path: Path) -> bytes:
    """What is in a file of credentials; raises MusterError that names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise MusterError(f"cannot read the credentials file {path}: {error.strerror}") from error
