"""Words by which an agent says what it can, so that jobs that need something go only to nodes that have it.

There is one version of the protocol; what has come since the first agents is told by a word.
"""

from collections.abc import Mapping
from types import MappingProxyType

from muster.domain.jobs.job import Role

SECRETS = "secrets"
"""The agent hands secrets of the project to its executions."""

ALL_FEATURES = frozenset({SECRETS})
"""Features of the agent of this version."""

MEANINGS: Mapping[str, str] = MappingProxyType({SECRETS: "secrets of the project"})
"""The words as a person reads them in `muster why`."""


def needed(role: Role) -> frozenset[str]:
    """The features that a node must have for this role."""
    return _WITH_SECRETS if role.secrets else _NOTHING


_NOTHING: frozenset[str] = frozenset()
_WITH_SECRETS = frozenset({SECRETS})
