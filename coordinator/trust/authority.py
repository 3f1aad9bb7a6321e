"""The fleet's authority as the coordinator holds it: its files, and the certificate with which it serves."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from muster.domain.errors import MusterError
from muster.domain.ids import NodeId
from muster.trust.certificates import (
    NODE_LIFE,
    PEER_LIFE,
    facts,
    fingerprint,
    issue_node,
    issue_peer,
    issue_server,
    make_authority,
    matches_key,
)
from muster.trust.files import write_private
from muster.trust.identity import Facts, Identity


class FleetAuthority:
    """Signs the certificates of this fleet."""

    def __init__(self, identity: Identity, names: Iterable[str], now: datetime) -> None:
        self._identity = identity
        self._names = tuple(names)
        self.fingerprint = fingerprint(identity.certificate)
        self.node_life = NODE_LIFE
        """How long the certificates of nodes last."""
        self.server: Identity
        """With which the coordinator serves; made anew at every start."""
        self.renew_server(now)

    @property
    def certificate(self) -> bytes:
        """What agents and clients trust."""
        return self._identity.certificate

    def renew_server(self, now: datetime) -> Facts:
        """Serve with a new key and certificate from now on."""
        self.server = issue_server(self._identity, self._names, now)
        return facts(self.server.certificate)

    def certify(self, request: bytes, node: NodeId, now: datetime, life: timedelta | None = None) -> bytes:
        """A certificate for a node that the registry knows; raises CertificateError for a bad request."""
        return issue_node(self._identity, request, node, now, life or self.node_life)

    def certify_peer(self, request: bytes, node: NodeId, now: datetime, life: timedelta = PEER_LIFE) -> bytes:
        """The certificate with which such a node asks others and answers them; raises CertificateError."""
        return issue_peer(self._identity, request, node, now, life)


def load_or_make(directory: Path, now: datetime) -> Identity:
    """The authority in a directory, made on the first start; raises MusterError where its key is lost or another's."""
    certificate, key = directory / "authority.pem", directory / "authority.key"
    if not certificate.exists():
        if key.exists():
            raise MusterError(
                f"{certificate} is gone, and {key} is there. Put a backup of {directory} in its place; without it all "
                "nodes must join anew"
            )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = make_authority(now)
        write_private(key, fresh.key)
        write_private(certificate, fresh.certificate)
        return fresh
    try:
        identity = Identity(certificate=certificate.read_bytes(), key=key.read_bytes())
    except OSError as error:
        raise MusterError(
            f"cannot read {error.filename}: {error.strerror}. Put a backup of {directory} in its place; without it all "
            "nodes must join anew",
        ) from error
    if not matches_key(identity.certificate, identity.key):
        raise MusterError(f"{key} is not the key of {certificate}; put a backup of {directory} in its place")
    return identity
