"""What a node is told that fetches the same as others of its attempt: who they are, and the key that they share."""

from dataclasses import dataclass, field

LONGEST_WANTED = 4160
"""Characters of what is wanted: a URL with the name of its secret, or the name of a tree."""

SWARM_KEY_BYTES = 32
"""Bytes of the key of a swarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmMember:
    """A node that fetches the same."""

    node: str
    address: str
    """`host:port` of its agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmPass:
    """A swarm as one of its nodes is told of it."""

    key: bytes = field(default=b"", repr=False)
    """The secret with which its nodes show that they may have what is fetched."""
    members: tuple[SwarmMember, ...] = ()
    """All nodes of the swarm, the one that asks among them; none: it fetches alone."""
