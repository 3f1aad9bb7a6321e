"""How the executions of a job ask for credentials of its project, and where they find them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

SECRETS_DIRECTORY = "/muster/secrets"
"""Where a container finds the directories of its secrets, unless the role says otherwise."""
SECRETS_DIRECTORY_VARIABLE = "MUSTER_SECRETS_DIR"
"""Names that directory to user code; to a plain process, the one that stands for it there."""
ONLY_KEY = ""
"""The value of `SecretUse.env` in place of a key: the only one that the secret has; an accepted job names it."""
KEY_FORM = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}"
"""A key is also the name of a file."""
MAX_USES = 32
"""Secrets of one role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """A secret that the executions of a role get."""

    secret: str
    """The secret's name in the job's project."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Key of the secret by environment variable."""
    directory: str | None = None
    """Absolute path of a directory with a file for each key; None: there is none."""
    standard_env: bool = False
    """Whether it also sets the variables that are usual for its kind; an accepted job has them spelled out instead."""
