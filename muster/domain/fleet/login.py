"""A login that waits for its person to confirm it at the identity provider, as a value."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta


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
