"""What is kept of trust, the port to where it is kept, and what the registry asks of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from muster.domain.fleet.access import Account, AuditAnchor, AuditEntry, EnrolledNode, IssuedJoinToken, IssuedToken
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.policies.preset import Preset, PresetId, PresetKind
from muster.domain.fleet.secret import Secret
from muster.domain.notifications.subscription import Subscription


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """An API token and what is kept of its secret."""

    token: IssuedToken
    digest: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJoinToken:
    """A join token and what is kept of its secret."""

    token: IssuedJoinToken
    digest: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedAccount:
    """An account that is to be forgotten, with its grants and tokens."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedToken:
    """An API token that is to be forgotten."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """A secret and its values, which only a key opens that is not in the store."""

    secret: Secret
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedSecret:
    """A secret that is to be forgotten."""

    project: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedSubscription:
    """A subscription that is to be forgotten."""

    project: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedPolicy:
    """A policy that is to be forgotten."""

    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedPreset:
    """A preset of which all versions are to be forgotten, but for how many there were."""

    project: str
    kind: PresetKind
    name: str
    version: int
    """The number of its last version, after which others count on."""

    @property
    def id(self) -> PresetId:
        """Which preset it was."""
        return PresetId(project=self.project, kind=self.kind, name=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensUsed:
    """When API tokens were shown last, by id; of a token that is gone by now nothing is kept."""

    times: Mapping[str, datetime]


TrustChange: TypeAlias = (
    Account
    | RemovedAccount
    | StoredToken
    | RemovedToken
    | TokensUsed
    | StoredJoinToken
    | EnrolledNode
    | StoredSecret
    | RemovedSecret
    | Subscription
    | RemovedSubscription
    | JobPolicy
    | RemovedPolicy
    | Preset
    | RemovedPreset
)
"""A record to be kept in place of the one with its key, or to be forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSnapshot:
    """Everything that is kept, without the audit log."""

    accounts: tuple[Account, ...] = ()
    tokens: tuple[StoredToken, ...] = ()
    join_tokens: tuple[StoredJoinToken, ...] = ()
    nodes: tuple[EnrolledNode, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    policies: tuple[JobPolicy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditWish:
    """Which entries of the audit log are wanted."""

    since: datetime | None = None
    until: datetime | None = None
    """Only from before this time."""
    who: str | None = None
    limit: int = 1000
    """Most entries: the newest that fit, or the oldest."""
    oldest_first: bool = False
    """Whether the oldest entries that fit are wanted, not the newest."""
    beyond: int | None = None
    """Only entries after this number, or before it where the newest are wanted."""


class TrustStore(Protocol):
    """Keeps trust durably. Synchronous and rarely called, each call from a thread of its own."""

    def load_trust(self) -> TrustSnapshot:
        """Everything, as last committed."""
        ...

    def commit_trust(self, changes: Sequence[TrustChange], entries: Sequence[AuditEntry] = ()) -> None:
        """Keep all changes and audit entries in one transaction."""
        ...

    def enrol(self, token: str, node: EnrolledNode, entry: AuditEntry) -> IssuedJoinToken | None:
        """Use a join token once for a node, in one transaction: the token as it is afterwards.

        None, and nothing has changed, if it has no use left, has expired by the time of the entry, or was revoked.
        """
        ...

    def audit(self, wish: AuditWish) -> Sequence[AuditEntry]:
        """Entries, oldest first."""
        ...

    def audit_anchor(self) -> AuditAnchor:
        """The last entry of those that were removed because they were old."""
        ...

    def prune_audit(self, before: datetime, most: int | None, now: datetime) -> int:
        """Remove entries from before a time, not beyond the number `most`; how many. An entry says so.

        The newest entry stays, and the chain holds from the anchor on.
        """
        ...


class PresetStore(Protocol):
    """Keeps every version of every preset. Synchronous, each call but the first from a thread of its own."""

    def load_presets(self) -> Sequence[Preset | RemovedPreset]:
        """The newest version of each preset, also of those that were removed."""
        ...

    def preset_versions(self, which: PresetId) -> Sequence[Preset]:
        """All versions of a preset, the newest first."""
        ...

    def preset_version(self, which: PresetId, version: int) -> Preset | None:
        """One version of a preset; None: there is none of that number."""
        ...

    def commit_trust(self, changes: Sequence[TrustChange], entries: Sequence[AuditEntry] = ()) -> None:
        """Keep all changes and audit entries in one transaction."""
        ...
