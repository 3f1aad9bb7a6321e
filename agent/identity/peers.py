"""How agents know each other: what a node shows to its peers, and channels to nobody else than one of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import grpc
import grpc.aio

from muster.domain.errors import PermissionDeniedError
from muster.domain.ids import NodeId
from muster.rpc.channel import Credentials, is_loopback
from muster.trust.names import peer_name

Shown = Callable[[], Credentials]
"""What the node shows; asked each time, because certificates are renewed."""


def open_peer_channel(
    address: str, node: NodeId, shown: Credentials, options: Sequence[tuple[str, int]]
) -> grpc.aio.Channel:
    """A channel to nobody else than the agent of that node; raises PermissionDeniedError.

    Without certificates it is plain text, and only to this machine.
    """
    if shown.authority is None:
        if not is_loopback(address):
            raise PermissionDeniedError(f"will not speak unencrypted to the agent of {node} at {address}")
        return grpc.aio.insecure_channel(address, options=options)
    tls = grpc.ssl_channel_credentials(shown.authority, shown.key, shown.certificate)
    named = ("grpc.ssl_target_name_override", peer_name(node))
    return grpc.aio.secure_channel(address, tls, (*options, named))


def is_shown(auth_context: Mapping[str, Iterable[bytes]], node: NodeId) -> bool:
    """Whether the certificate of a call, which gRPC has verified, is that with which this node asks others."""
    return list(auth_context.get("peer_dns", ())) == [peer_name(node).encode()]
