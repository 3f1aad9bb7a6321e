"""What is known of certificates, for those too who leave it to others to make and to read them."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from muster.domain.errors import MusterError
from muster.domain.ids import NodeId

SKEW = timedelta(minutes=5)
"""How far the clocks of two nodes may differ without a fresh certificate being refused."""


class CertificateError(MusterError):
    """A key, a request or a certificate cannot be used; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A certificate and its key, both in PEM form."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What a certificate says."""

    key: str
    """Fingerprint of its public key: the SHA-256 of its SubjectPublicKeyInfo, in hexadecimal."""
    node: NodeId | None
    """The node that it belongs to; None: it is no node's."""
    not_before: datetime
    not_after: datetime

    @property
    def half_life(self) -> datetime:
        """When half of its life is over, and it is time for the next one."""
        return self.not_after - (self.not_after - self.not_before - SKEW) / 2
