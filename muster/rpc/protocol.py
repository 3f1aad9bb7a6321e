"""The version of the protocol between agents and coordinator.

There is one. New fields and messages that may be ignored leave it as it is, and what a side must know of the other is
told by words (`muster.domain.fleet.features`). The number goes up only when one side would misunderstand the other.
"""

from muster.domain.errors import ConflictError

PROTOCOL_VERSION = 1


def require_spoken(version: int) -> None:
    """Raise ConflictError for an agent that speaks another version of the protocol."""
    if version == PROTOCOL_VERSION:
        return
    spoken = f"version {version}" if version else "an unnumbered version"
    older = "agent" if version < PROTOCOL_VERSION else "coordinator"
    raise ConflictError(
        f"the agent speaks {spoken} of the protocol, the coordinator version {PROTOCOL_VERSION}; upgrade the {older}"
    )
