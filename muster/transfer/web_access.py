"""What opens a web server, which no other server is shown."""

import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.errors import MusterError
from muster.domain.fleet.secret import is_for


class WebAccessError(MusterError):
    """A secret cannot be shown to its server; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """What is shown to one server, and how that is believed."""

    secret: str = ""
    """The name of the secret that all this stands in; empty: nothing is shown."""
    server: str = ""
    authorization: str = field(default="", repr=False)
    """What a request has in its header; empty: nothing."""
    ca: str = ""
    """Certificates of the authority of the server, as PEM; empty: those that everybody believes."""

    def is_shown_to(self, url: str) -> bool:
        """Whether a URL is one of that server."""
        return bool(self.secret) and is_for(self.server, url)

    def trust(self) -> ssl.SSLContext:
        """The authorities whose word counts on who the server is; raises WebAccessError."""
        context = ssl.create_default_context()
        if self.ca:
            try:
                context.load_verify_locations(cadata=self.ca)
            except (ssl.SSLError, ValueError):
                raise WebAccessError(f"the secret {self.secret!r} cannot be used: its ca is no certificate") from None
        return context


def web_access(secret: str, values: Mapping[str, bytes]) -> WebAccess:
    """The way to a server that a secret of kind `http` opens, by its values; raises WebAccessError."""
    said = {key: value.decode() for key, value in values.items()}
    token = said.get("token", "")
    if not token.isascii():
        raise WebAccessError(f"the secret {secret!r} cannot be used: its token has letters that no request can have")
    shown = f"Bearer {token}" if token else ""
    if not token and "password" in said:
        pair = f"{said.get('username', '')}:{said['password']}".encode()
        shown = f"Basic {b64encode(pair).decode()}"
    return WebAccess(secret=secret, server=said["server"], authorization=shown, ca=said.get("ca", ""))
