"""How stores are reached, and what opens them; nothing of that is ever written down."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAccess:
    """How a store is reached and opened."""

    endpoint: str = ""
    """The URL of the store; empty: that of AWS."""
    region: str = ""
    ca: str = ""
    """Certificates of the authority of the store, as PEM; empty: those that everybody believes."""
    key_id: str = field(default="", repr=False)
    """Empty: everybody may read it."""
    key: str = field(default="", repr=False)
    session: str = field(default="", repr=False)
    secret: str = ""
    """The name of the secret that all this stands in."""
    patience: float = 60.0
    """Seconds for one answer."""
