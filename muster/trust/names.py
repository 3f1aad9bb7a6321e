"""The names in certificates."""

from muster.domain.ids import NodeId

SERVER_NAME = "coordinator.muster"
"""The name that every server certificate carries, beside the addresses that it happens to have.

The fleet's authority signs it for the coordinator alone, so it says enough at whatever address a caller has reached it:
through a tunnel, a forwarded port, an address that the coordinator does not know of.
"""

_NODE_URI = "muster://node/"
_PEER_DOMAIN = "node.muster"
_PEER_DIGITS = 40


def uri_of_node(node: NodeId) -> str:
    """The name in the certificate of a node."""
    return f"{_NODE_URI}{node}"


def node_in_uri(uri: str) -> NodeId | None:
    """The node whose name it is; None: no node's."""
    return NodeId(uri.removeprefix(_NODE_URI)) if uri.startswith(_NODE_URI) else None


def peer_name(node: NodeId) -> str:
    """The name under which the agent of a node answers its peers.

    Names of nodes may be longer than those in DNS, and there capitals do not count; so it is made of a digest.
    """
    import hashlib  # noqa: PLC0415 - OpenSSL, which agents do without until a coordinator is away

    return f"{hashlib.sha256(node.encode()).hexdigest()[:_PEER_DIGITS]}.{_PEER_DOMAIN}"
