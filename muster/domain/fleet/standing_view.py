"""What people are shown of quotas: departments and projects with what they hold, and the queue."""

from dataclasses import dataclass, replace
from datetime import datetime

from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts, QuotaUnit
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.job_class import JobClass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStandingView:
    """What a department or a project has in one pool, and what it may have there."""

    pool: str
    quota: Amounts
    limit: Amounts
    weight: int
    rank: int
    share: Amounts
    """What it should have now; nothing of resources of which nobody was told a quota."""
    held: Amounts
    guaranteed: Amounts
    """The part of what is held that guaranteed jobs have."""
    waiting: Amounts
    """What queued jobs want."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStandingView:
    """A department or a project with its terms, its jobs, and what it has in each pool."""

    unit: QuotaUnit
    running: int = 0
    """Jobs that hold something."""
    queued: int = 0
    pools: tuple[PoolStandingView, ...] = ()
    """Pools in which something was counted, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """A pool as people are shown it: what was set, and what it has."""

    pool: Pool
    is_set: bool
    """Whether somebody has set it up; if not, it is there because nodes are in it."""
    nodes: tuple[NodeId, ...] = ()
    """The nodes that are in it, by name."""
    capacity: Amounts = NO_AMOUNTS
    """What its nodes have that can be used."""
    held: Amounts = NO_AMOUNTS
    """What jobs hold there."""
    warnings: tuple[str, ...] = ()
    """Nodes that another pool claims as well; a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """A queued job in the order in which jobs are tried."""

    position: int
    """1 for the one that is tried first."""
    job: JobId
    """Empty for a job of a project that the caller may not look at; so are its name and project."""
    name: str
    project: str
    owner: str
    pool: str
    job_class: JobClass
    priority: int
    tier: str
    """What it would use: `quota`, `share`, `borrowed` or `spare`."""
    size: Amounts
    since: datetime
    """When it was queued."""
    reason: str
    """Why it waits, as one word; docs/sharing.md has them all."""

    @property
    def unnamed(self) -> "QueueLine":
        """The line as they see it who may not look at the job's project."""
        return replace(self, job=JobId(""), name="", project="", owner="", priority=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """A part of the queue, and where the next one is."""

    lines: tuple[QueueLine, ...]
    next_page: str = ""
    """Given back for the next page; empty: there is none."""
