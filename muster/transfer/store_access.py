"""How stores are reached, and what opens them; nothing of that is ever written down."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.data.job_input import AZURE_SCHEME, S3_SCHEME


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAccess:
    """How a store is reached and opened."""

    endpoint: str = ""
    """The URL of the store; empty: that of AWS, or of the account."""
    region: str = ""
    ca: str = ""
    """Certificates of the authority of the store, as PEM; empty: those that everybody believes."""
    account: str = ""
    """The account of Azure; empty: it is a store that speaks S3."""
    sas: str = field(default="", repr=False)
    """What opens that account, or parts of it, in place of its key."""
    key_id: str = field(default="", repr=False)
    """Empty: everybody may read it."""
    key: str = field(default="", repr=False)
    session: str = field(default="", repr=False)
    secret: str = ""
    """The name of the secret that all this stands in."""
    patience: float = 60.0
    """Seconds for one answer."""

    @property
    def scheme(self) -> str:
        """How URLs of its objects begin."""
        return AZURE_SCHEME if self.account else S3_SCHEME

    @property
    def place(self) -> str:
        """What tells it from other stores: its URL, or its account."""
        return self.endpoint or self.account


def store_access(secret: str, values: Mapping[str, bytes], patience: float) -> StoreAccess:
    """The way to a store that a secret of kind `s3` or `azure` opens, by its values.

    Without values it is the way to what everybody may read.
    """
    said = {key: value.decode() for key, value in values.items()}
    return StoreAccess(
        endpoint=said.get("endpoint", ""),
        region=said.get("region", ""),
        ca=said.get("ca", ""),
        key_id=said.get("access-key-id", ""),
        key=said.get("secret-access-key", "") or said.get("key", ""),
        account=said.get("account", ""),
        sas=said.get("sas", "").removeprefix("?"),
        session=said.get("session-token", ""),
        secret=secret,
        patience=patience,
    )
