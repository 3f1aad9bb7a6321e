"""Where the programs beside the coordinator listen, and how a caller reaches them."""

from collections.abc import Callable

import grpc
import grpc.aio

from muster.domain.errors import MusterError, PermissionDeniedError
from muster.rpc.channel import is_loopback, served_credentials
from muster.trust.identity import Identity


def bound_companion(server: grpc.aio.Server, listen: str, identity: Callable[[], Identity] | None, option: str) -> str:
    """Have the server of such a program listen; HOST:PORT with the port that was bound.

    `identity` gives the certificate to serve with; None: plain text, on a loopback address alone. `option` is what
    chooses the address. Raises MusterError.
    """
    try:
        if identity is not None:
            port = server.add_secure_port(listen, served_credentials(identity, None))
        elif is_loopback(listen):
            port = server.add_insecure_port(listen)
        else:
            raise PermissionDeniedError(
                f"will not speak unencrypted on {listen}, which other machines can reach; the coordinator of this "
                f"machine runs with --local, so name a loopback address with {option}"
            )
    except RuntimeError as error:
        raise MusterError(f"cannot listen on {listen}: is something else listening there? ({error})") from error
    return f"{listen.rpartition(':')[0]}:{port}"


def same_port(wanted: str, before: str) -> str:
    """Where to listen: who takes any free port takes the one of before, as callers come there."""
    host, _, port = wanted.rpartition(":")
    return before if port == "0" and before.rpartition(":")[0] == host else wanted
