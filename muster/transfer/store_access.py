"""How stores are reached, and what opens them; nothing of that is ever written down."""

from collections.abc import Mapping
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


def store_access(secret: str, values: Mapping[str, bytes], patience: float) -> StoreAccess:
    """The way to a store that a secret of kind `s3` opens, by its values; none: the way to what everybody may read."""
    said = {key: value.decode() for key, value in values.items()}
    return StoreAccess(
        endpoint=said.get("endpoint", ""),
        region=said.get("region", ""),
        ca=said.get("ca", ""),
        key_id=said.get("access-key-id", ""),
        key=said.get("secret-access-key", ""),
        session=said.get("session-token", ""),
        secret=secret,
        patience=patience,
    )
