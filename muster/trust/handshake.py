"""What can be seen of a server by who can verify nobody yet."""

import ssl

from muster.domain.errors import UnavailableError

HANDSHAKE_PATIENCE = 10.0
"""Seconds to connect, and as many for the handshake."""


def shown_at(address: str) -> bytes:
    """The certificate of whoever answers with TLS at `host:port`, not believed yet. Blocks; raises UnavailableError."""
    host, _, port = address.rpartition(":")
    try:
        return ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=HANDSHAKE_PATIENCE).encode()
    except ssl.SSLError:
        raise UnavailableError(
            f"who answers at {address} does not speak TLS, so it is no coordinator of a fleet (what `muster up` runs "
            "needs no login)"
        ) from None
    except (OSError, ValueError) as error:
        raise UnavailableError(f"no coordinator with TLS answers at {address}: {error}") from error
