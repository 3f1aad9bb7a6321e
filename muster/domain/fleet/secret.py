"""Credentials of projects: how they are known. Values are only in what is on its way to an execution."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from muster.domain.data.job_input import AZURE_SCHEME, S3_SCHEME
from muster.domain.jobs.secret_use import KEY_FORM

MAX_VALUE = 64 * 1024
"""Bytes of one value."""
MAX_SECRET = 256 * 1024
"""Bytes of all values of one secret; they lie in the memory of each node that runs something with it."""
MAX_KEYS = 64

_WEB_PORTS = {"https": 443, "http": 80}


class SecretKind(StrEnum):
    """What a secret is for; each kind has keys that it must have."""

    GENERIC = "generic"  #: any keys
    REGISTRY = "registry"  #: `server`, `username`, `password`; used when images are pulled from that server
    S3 = "s3"  #: `access-key-id`, `secret-access-key`, and perhaps `endpoint`, `region`, `session-token`, `ca`
    AZURE = "azure"  #: `account` with `key` or `sas`, and perhaps `endpoint`, `ca`
    HTTP = "http"  #: `server` with `token`, with `username` and `password`, or with a `ca` alone
    GIT = "git"  #: `server`, `username`, `token`; or `ssh-key`, and perhaps `known-hosts`


STORE_SECRETS: Mapping[str, SecretKind] = {S3_SCHEME: SecretKind.S3, AZURE_SCHEME: SecretKind.AZURE}
"""The kind of the secrets that open a store, by how URLs of its objects begin."""


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
    """The server that credentials of a registry, of Git or of a web server are for; empty for other kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredSecret:
    """A secret with its values, on its way to an execution; never stored or logged."""

    name: str
    kind: SecretKind
    values: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What the secrets of a role come to: all that one execution finds of them; never stored or logged."""

    env: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Value by environment variable."""
    files: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict, repr=False)
    """Content by key, by the directory in which a container finds it."""
    masked: tuple[bytes, ...] = field(default=(), repr=False)
    """Values that must not show up in what it prints."""

    def __bool__(self) -> bool:
        return bool(self.env or self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRules:
    """Which keys the secrets of a kind have."""

    one_of: tuple[frozenset[str], ...] = ()
    """Sets of keys, of which one must be there whole; empty: any keys will do."""
    others: frozenset[str] = frozenset()
    """What they may have besides."""
    shown: frozenset[str] = frozenset()
    """What is no secret, and therefore not masked: names and addresses."""

    @property
    def known(self) -> frozenset[str]:
        """Every key that they may have; empty: any."""
        return frozenset().union(*self.one_of, self.others)


KEY_RULES: Mapping[SecretKind, KeyRules] = {
    SecretKind.GENERIC: KeyRules(),
    SecretKind.REGISTRY: KeyRules(
        one_of=(frozenset({"server", "username", "password"}),), shown=frozenset({"server", "username"})
    ),
    SecretKind.S3: KeyRules(
        one_of=(frozenset({"access-key-id", "secret-access-key"}),),
        others=frozenset({"endpoint", "region", "session-token", "ca"}),
        shown=frozenset({"endpoint", "region", "ca"}),
    ),
    SecretKind.AZURE: KeyRules(
        one_of=(frozenset({"account", "key"}), frozenset({"account", "sas"})),
        others=frozenset({"endpoint", "ca"}),
        shown=frozenset({"account", "endpoint", "ca"}),
    ),
    SecretKind.HTTP: KeyRules(
        one_of=(
            frozenset({"server", "token"}),
            frozenset({"server", "username", "password"}),
            frozenset({"server", "ca"}),
        ),
        shown=frozenset({"server", "username", "ca"}),
    ),
    SecretKind.GIT: KeyRules(
        one_of=(frozenset({"server", "username", "token"}), frozenset({"ssh-key"})),
        others=frozenset({"known-hosts"}),
        shown=frozenset({"server", "username", "known-hosts"}),
    ),
}


def is_for(server: str, url: str) -> bool:
    """Whether what a secret says of its server means that of a URL; without a scheme it means https:// alone."""
    scheme, _, said = server.strip().lower().removesuffix("/").rpartition("://")
    found = re.fullmatch(r"(https?)://([^/?#@]+)(?:[/?#].*)?", url, re.IGNORECASE | re.DOTALL)
    if found is None or found[1].lower() != (scheme or "https"):
        return False
    port = _WEB_PORTS[found[1].lower()]
    return _with_port(said, port) == _with_port(found[2].lower(), port)


def _with_port(authority: str, port: int) -> str:
    return authority if re.search(r":[0-9]+$", authority) else f"{authority}:{port}"


def problem_with_keys(kind: SecretKind, keys: Collection[str]) -> str | None:
    """What is wrong with the keys of a secret, as a sentence without a subject; None: nothing."""
    if not keys:
        return "has no values"
    if len(keys) > MAX_KEYS:
        return f"has {len(keys)} keys; at most {MAX_KEYS} are taken"
    if odd := sorted(key for key in keys if not re.fullmatch(KEY_FORM, key)):
        return f"has the key {odd[0][:80]!r}; a key has at most 63 letters, digits, dots, hyphens and underscores"
    rules = KEY_RULES[kind]
    if rules.one_of and not any(wanted <= set(keys) for wanted in rules.one_of):
        wanted = ", or ".join(" and ".join(sorted(each)) for each in rules.one_of)
        return f"is of kind {kind}, which needs {wanted}; it has {', '.join(sorted(keys))}"
    if rules.known and (odd := sorted(set(keys) - rules.known)):
        return f"has the key {odd[0]!r}; those of kind {kind} have {', '.join(sorted(rules.known))}"
    return None
