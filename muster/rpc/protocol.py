"""Versions of the protocol between agents and coordinator: which are spoken here, and which two programs speak.

A number goes up when one side would misunderstand the other; new fields and messages that may be ignored leave it.
"""

from muster.domain.errors import ConflictError

NEWEST = 4
OLDEST = 4
"""What this program speaks: from here to NEWEST. Versions 1 to 3 had the role in each assignment, so a plan could grow
too large to be sent; no release spoke them."""


def agreed(newest: int, oldest: int) -> int:
    """The newest version that both this program and its peer speak; raises ConflictError if there is none."""
    oldest = oldest or newest
    if oldest <= NEWEST and newest >= OLDEST:
        return min(newest, NEWEST)
    spoken, known = _versions(oldest, newest), _versions(OLDEST, NEWEST)
    older = "agent" if newest < OLDEST else "coordinator"
    raise ConflictError(f"the agent speaks {spoken} of the protocol, the coordinator {known}; upgrade the {older}")


def _versions(oldest: int, newest: int) -> str:
    if newest == 0:
        return "an unnumbered version"
    return f"version {newest}" if oldest == newest else f"versions {oldest} to {newest}"
