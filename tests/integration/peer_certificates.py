"""What nodes of a fleet show to each other."""

from datetime import UTC, datetime, timedelta

from muster.domain.ids import NodeId
from muster.rpc.channel import Credentials
from muster.trust.certificates import issue_peer, make_authority, new_key, request_certificate
from muster.trust.identity import Identity

NOW = datetime.now(UTC)
FLEET, FALSE = make_authority(NOW), make_authority(NOW)


def shown_by(node: NodeId, authority: Identity = FLEET, life: timedelta = timedelta(hours=1)) -> Credentials:
    """What a node shows to others."""
    key = new_key()
    certificate = issue_peer(authority, request_certificate(key, node), node, NOW, life)
    return Credentials(authority=FLEET.certificate, certificate=certificate, key=key)
