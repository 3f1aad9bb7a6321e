"""Logins and sessions that begin, as values."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

WAY_BACK = "/v1/login/callback"
"""The path of a console to which the identity provider sends people back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingLogin:
    """What a person needs to confirm a login, and a program to finish it."""

    verification_uri: str
    """Where it is confirmed."""
    verification_uri_complete: str
    """The same with the code in it; empty: there is none."""
    user_code: str
    """What the person types there."""
    expires_at: datetime
    interval: timedelta
    """How often to ask."""
    secret: str = field(repr=False)
    """Whoever has it gets the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedCode:
    """A code with which a browser begins a session of whoever made it; it counts once."""

    code: str = field(repr=False)
    expires_at: datetime
    console: str
    """How browsers reach the console; empty: the coordinator was not told."""

    def link(self, console: str = "", path: str = "") -> str:
        """The link to a page, which a browser opens and is signed in: nobody but the page sees what follows the `#`."""
        return f"{self.console or console}/{path}#code={self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """The session of somebody who has signed in at a console."""

    token: str = field(repr=False)
    own: bool
    """Whether the token was made for this session, and is revoked at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLogin:
    """A login that waits for its person to come back from the identity provider, in a browser."""

    url: str
    """Where the person logs in."""
    secret: str = field(repr=False)
    """What completes it, together with what the provider sends back."""
    expires_at: datetime
