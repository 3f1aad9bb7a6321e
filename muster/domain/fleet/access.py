"""Rights as values: accounts, tokens, projects and the audit log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.domain.fleet.quota import WITHOUT_TERMS, QuotaUnit, UnitKind, UnitTerms
from muster.domain.ids import NodeId
from muster.domain.jobs.job import CAPABILITIES, MOST_PIDS

EVERYWHERE = "*"
"""The word in a grant for every project, and for what belongs to none (nodes, accounts, the audit log)."""
USED_UP = "is used up"
"""Why a join token counts no more, when as many nodes have joined with it as may."""
PERSON_TOKEN_LIFE = timedelta(days=90)
"""How long a person's token counts unless its maker says otherwise; those of programs end only where that is asked."""
DEFAULT_STORAGE = 100 * 2**30
"""Bytes that a project may keep in the depot until an admin says otherwise."""
TOKEN_WARNING = timedelta(days=7)
"""Time before its end in which a token says so to whoever shows it."""


class Access(StrEnum):
    """What an account may do in a project; each may do what those before it may."""

    VIEWER = "viewer"  #: look at jobs and their logs
    MEMBER = "member"  #: submit, stop and delete jobs
    OPERATOR = "operator"  #: with `*`: let nodes join, send them away
    ADMIN = "admin"  #: with `*`: accounts, tokens, projects, the audit log

    def covers(self, wanted: "Access") -> bool:
        """Whether this is at least as much."""
        order = list(Access)
        return order.index(self) >= order.index(wanted)


class AccountKind(StrEnum):
    """What is behind an account."""

    USER = "user"  #: a person
    SERVICE = "service"  #: a program
    CONSOLE = "console"  #: a console, which alone is given the keys of subscriptions


def seen_projects(grants: Mapping[str, Access]) -> frozenset[str] | None:
    """The projects whose jobs one with these grants may look at; None: all."""
    seen = frozenset(project for project, has in grants.items() if has.covers(Access.VIEWER))
    return None if EVERYWHERE in seen else seen


def narrowed(
    grants: Mapping[str, Access], access: Access | None, projects: tuple[str, ...] = ()
) -> Mapping[str, Access]:
    """Grants of an account as a token has them: at most `access`, and only in `projects` unless that is empty."""
    if projects:
        every = grants.get(EVERYWHERE)
        found = {project: _most(every, grants.get(project)) for project in projects}
        grants = {project: has for project, has in found.items() if has is not None}
    if access is None:
        return grants
    return {project: access if has.covers(access) else has for project, has in grants.items()}


def _most(one: Access | None, other: Access | None) -> Access | None:
    if one is None or other is None:
        return one or other
    return one if one.covers(other) else other


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody whom the coordinator knows by a token."""

    name: str
    kind: AccountKind
    created_at: datetime
    grants: Mapping[str, Access] = field(default_factory=dict)
    """Access by project; EVERYWHERE for all."""
    identity: str = ""
    """The person at the identity provider (issuer and subject); empty: it is not known there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """What is known of an API token; its secret is not."""

    id: str
    account: str
    note: str
    """What it is for, as its maker said."""
    created_at: datetime
    expires_at: datetime | None = None
    """None: never."""
    revoked_at: datetime | None = None
    access: Access | None = None
    """The most that it may, whatever its account may; None: all that its account may."""
    projects: tuple[str, ...] = ()
    """The only projects in which it counts; empty: wherever its account has access."""
    used_at: datetime | None = None
    """When it was shown last, to the minute; None: never, as far as is known."""

    @property
    def narrowed(self) -> bool:
        """Whether it may less than its account."""
        return self.access is not None or bool(self.projects)

    def idle_since(self, before: datetime) -> bool:
        """Whether it was made and last shown before that time."""
        return max(self.created_at, self.used_at or self.created_at) < before

    def valid(self, now: datetime) -> bool:
        """Whether it still counts."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedJoinToken:
    """What is known of a join token; its secret is not."""

    id: str
    created_by: str
    created_at: datetime
    expires_at: datetime
    uses_left: int
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the nodes carry that join with it, whatever they say themselves."""
    revoked_at: datetime | None = None

    def refusal(self, now: datetime) -> str | None:
        """Why it counts no more; None: it does."""
        if self.revoked_at is not None:
            return "was revoked"
        if now >= self.expires_at:
            return "has expired"
        return USED_UP if self.uses_left < 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What the containers of a project may do beyond the default, and who may attach to them."""

    capabilities: frozenset[str] = frozenset()
    """Capabilities that jobs may ask for."""
    privileged: bool = False
    gain_privileges: bool = False
    """Whether programs may gain privileges (setuid)."""
    any_user: bool = False
    """Whether they may run as any user, root too, and as the one that the image names."""
    host_paths: tuple[str, ...] = ()
    """Directories of nodes below which they may mount, where the node lets jobs mount, too."""
    pids: int | None = None
    """The most processes and threads that one may ask for; None: the default."""
    attach: AttachPermission = field(default_factory=AttachPermission)


OPEN = Permissions(
    capabilities=CAPABILITIES,
    privileged=True,
    gain_privileges=True,
    any_user=True,
    host_paths=("/",),
    pids=MOST_PIDS,
    attach=AttachPermission(who=Attachers.MEMBERS),
)
"""Everything that a job file can ask for, and attaching for all members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A tenant: whoever has no access to it does not learn of its jobs."""

    name: str
    created_at: datetime
    permissions: Permissions = Permissions()
    department: str = ""
    """The department that it belongs to; empty: none."""
    terms: UnitTerms = WITHOUT_TERMS
    storage: int = DEFAULT_STORAGE
    """Bytes that it may keep in the depot."""

    @property
    def unit(self) -> QuotaUnit:
        """The project, as far as quotas are concerned."""
        return QuotaUnit(name=self.name, kind=UnitKind.PROJECT, department=self.department, terms=self.terms)


def no_project(name: str) -> str:
    """What is said of a project that is not there, or of which the caller must not know."""
    return f"there is no project {name!r}; `muster projects list` shows yours"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolledNode:
    """A node that has joined; only who has its key speaks for it."""

    name: NodeId
    key: str
    """Fingerprint of its public key."""
    enrolled_at: datetime
    token: str
    """Id of the join token."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """From the join token and from operators."""
    revoked_at: datetime | None = None
    epoch: int = 0
    """The stage of changes of the authority that it has learned of."""
    next_key: str = ""
    """The fingerprint of a key that was certified for it, and not shown yet; until then both count."""
    next_epoch: int = 0
    """The epoch that it has learned of once it shows that key."""

    def has_key(self, key: str) -> bool:
        """Whether a key, by its fingerprint, speaks for this node."""
        return key in {self.key, self.next_key} - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Somebody did something, or was refused."""

    at: datetime
    who: str
    """An account, `node/NAME`, or empty for a stranger."""
    what: str
    """The operation, like `jobs.submit`."""
    target: str
    """What it was about: a job, a node, an account; empty for nothing in particular."""
    origin: str
    """Where it came from, as gRPC names peers."""
    result: str
    """`ok`, or why it was refused."""
    number: int = 0
    """The entry's place in the audit log, from 1 on; 0: it is not written yet."""
    previous: str = ""
    """The hash of the entry before it; empty for the first of all."""
    hash: str = ""
    """The entry's own hash, as `audit_chain` makes it; empty: it is not written yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditAnchor:
    """The last entry of those that were removed because they were old; the oldest entry that is left follows it."""

    number: int = 0
    """0: none was removed."""
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Some entries of the audit log, and where the next ones are."""

    entries: tuple[AuditEntry, ...] = ()
    """Oldest first."""
    next_page: str = ""
    """Given back for the next page; empty: there is none."""
    anchor: AuditAnchor = AuditAnchor()


@dataclass(frozen=True, slots=True, kw_only=True)
class Myself:
    """What the caller is to the coordinator."""

    name: str
    kind: str
    grants: Mapping[str, Access] = field(default_factory=dict)
    token: str = ""
    """Id of the token one has shown."""
    expires_at: datetime | None = None
    identity: str = ""
    """The caller at the identity provider; empty: not known there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAuthority:
    """An authority of the fleet that counts."""

    fingerprint: str
    signs: str
    """What it signs, in words."""
    not_after: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityStatus:
    """How far a change of the fleet's authority is."""

    stage: str
    authorities: tuple[KnownAuthority, ...] = ()
    """The present one first."""
    begun_at: datetime | None = None
    """None: there is no change."""
    moved: int = 0
    """How many nodes have done what this stage asks of them."""
    waiting: tuple[NodeId, ...] = ()
    """Nodes that are there and have not."""
    away: tuple[NodeId, ...] = ()
    """Nodes that are silent and have not."""
