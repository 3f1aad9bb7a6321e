"""How both ends of every connection are set up: keepalive, message size, encryption."""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from muster.domain.errors import PermissionDeniedError
from muster.trust.names import SERVER_NAME

if TYPE_CHECKING:  # clients do without, and start sooner
    from muster.trust.identity import Identity

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
"""Options of channels that dial."""

AGENT_LINK: Mapping[str, int] = {
    # Agents say something every 10 s anyway, and who is heard is not asked. On thousands of links that are asked every
    # 5 s, asking is most of what a coordinator at rest does.
    "grpc.keepalive_time_ms": 12_000,
    # Each message that arrives would be answered by a ping, to learn how much may be under way. So it is said here.
    "grpc.http2.bdp_probe": 0,
    "grpc.http2.lookahead_bytes": 512 * 1024,
}
"""Options of both ends of the links of agents."""

AGENT_CHANNEL_OPTIONS: Sequence[tuple[str, int]] = tuple(
    {
        **dict(CHANNEL_OPTIONS),
        **AGENT_LINK,
        # As long as a fleet of 5,000 needs that comes back at once: who gives up begins anew at the end of the line.
        "grpc.min_reconnect_backoff_ms": 10_000,
    }.items()
)
"""Options of agents that dial a coordinator."""

RELAY_CHANNEL_OPTIONS: Sequence[tuple[str, int]] = tuple(
    {
        **dict(CHANNEL_OPTIONS),
        # With gRPC's defaults each attachment whose reader does not read has 24 MiB under way, and so it is 1 MiB.
        "grpc.http2.bdp_probe": 0,
        "grpc.http2.lookahead_bytes": 512 * 1024,
        # A minute after the last attachment the connection is let go of.
        "grpc.client_idle_timeout_ms": 60_000,
    }.items()
)
"""Options of both sides of an attachment that dial the relay."""

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
"""Options of servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The authority that a caller believes, and what it shows of itself."""

    authority: bytes | None = None
    """Certificate (PEM) of who signed the coordinator's; None: plain text, which only `muster up` speaks."""
    certificate: bytes | None = None
    """One's own certificate (PEM); None: one has none."""
    key: bytes | None = field(default=None, repr=False)
    """The key of `certificate`."""
    token: str | None = field(default=None, repr=False)
    """Shown with every call."""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...] | None:
        """What goes with every call."""
        return None if self.token is None else (("authorization", f"Bearer {self.token}"),)


NOTHING = Credentials()
"""One believes whoever answers on this machine, and shows nothing."""


def open_channel(
    address: str, credentials: Credentials = NOTHING, options: Sequence[tuple[str, int]] = CHANNEL_OPTIONS
) -> grpc.aio.Channel:
    """A channel to `host:port`, not connected yet; without an authority it is plain text, only to this machine."""
    if credentials.authority is not None:
        tls = grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
        return grpc.aio.secure_channel(address, tls, (*options, ("grpc.ssl_target_name_override", SERVER_NAME)))
    if not is_loopback(address):
        raise PermissionDeniedError(
            f"will not speak unencrypted to {address}: no coordinator is known there; `muster login {address}` "
            "makes it known (an agent joins with a token: `muster nodes token create`)",
        )
    return grpc.aio.insecure_channel(address, options)


def served_credentials(
    identity: "Callable[[], Identity]", clients: Callable[[], bytes] | None
) -> grpc.ServerCredentials:
    """TLS for whoever listens, with the identity and the authorities that there are at each handshake.

    `clients` gives the authorities (PEM) of which callers must show a certificate; None: they need none.
    """

    def present() -> "tuple[Identity, bytes | None]":
        return identity(), None if clients is None else clients()

    shown = present()

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        nonlocal shown
        now = present()
        if now == shown:
            return None
        shown = now
        return configuration(*shown)

    def configuration(each: "Identity", authorities: bytes | None) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(each.key, each.certificate)], authorities)

    # The stubs do not know that None means: as before.
    must_show = clients is not None
    return grpc.dynamic_ssl_server_credentials(configuration(*shown), fetch, must_show)  # type: ignore[arg-type]  # as said above


def is_loopback(address: str) -> bool:
    """Whether `host:port` can only be reached from this machine."""
    host = address.removeprefix("dns:///").rpartition(":")[0].strip("[]")
    if address.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
