"""Credentials of projects: how they are known, and how executions ask for them. Values are never in these."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class SecretKind(StrEnum):
    """What a secret is for; each kind has keys that it must have."""

    GENERIC = "generic"  #: any keys
    REGISTRY = "registry"  #: `server`, `username`, `password`; used when images are pulled from that server
    S3 = "s3"  #: `access-key-id`, `secret-access-key`, and perhaps `endpoint`, `region`, `session-token`
    GIT = "git"  #: `server`, `username`, `token`; or `ssh-key`


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What is known of a secret; its values are not."""

    project: str
    name: str
    kind: SecretKind
    keys: tuple[str, ...]
    """What its values are called."""
    created_at: datetime
    updated_at: datetime
    updated_by: str
    server: str = ""
    """The server that registry credentials are for; empty for other kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretUse:
    """A secret that the executions of a role get."""

    secret: str
    """Its name in the job's project."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Key of the secret by environment variable."""
    directory: str | None = None
    """Absolute path of a directory with a file for each key; None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredSecret:
    """A secret with its values, on its way to an execution; never stored or logged."""

    name: str
    kind: SecretKind
    values: Mapping[str, bytes] = field(repr=False)
