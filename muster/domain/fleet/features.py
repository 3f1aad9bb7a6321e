"""Words by which an agent says what it can, so that jobs that need something go only to nodes that have it.

There is one version of the protocol; what has come since the first agents is told by a word.
"""

from collections.abc import Mapping
from types import MappingProxyType

from muster.domain.jobs.job import JobSpec, Role

SECRETS = "secrets"
"""The agent hands secrets of the project to its executions."""

GANG_COMMANDS = "gang-commands"
"""The agent lets user code run commands in the other executions of its attempt."""

ATTACH = "attach"
"""The agent lets people and programs attach to running executions; one with `--no-attach` does not say it."""

ALL_FEATURES = frozenset({SECRETS, GANG_COMMANDS, ATTACH})
"""Features of the agent of this version."""

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        SECRETS: "secrets of the project",
        GANG_COMMANDS: "commands in other executions",
        ATTACH: "attaching to running executions",
    }
)
"""The words as a person reads them in `muster why`."""


def needed(spec: JobSpec, role: Role) -> frozenset[str]:
    """The features that a node must have for this role of a job."""
    return _NEEDED[bool(role.secrets), bool(spec.gang_commands)]


_NEEDED: Mapping[tuple[bool, bool], frozenset[str]] = MappingProxyType(
    {
        (False, False): frozenset(),
        (True, False): frozenset({SECRETS}),
        (False, True): frozenset({GANG_COMMANDS}),
        (True, True): frozenset({SECRETS, GANG_COMMANDS}),
    }
)
"""One and the same set for all roles that are alike, by whether there are secrets, and commands in the gang."""
