"""What was used of GPUs, CPUs and memory over time, as people are shown it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from muster.domain.fleet.quota import NO_AMOUNTS, Amounts

MOST_USAGE_ROWS = 10_000
"""Most rows of one answer; whoever asks for more is told to ask for less time."""


class UsageBy(StrEnum):
    """What each row of a usage report is about."""

    DEPARTMENT = "department"
    PROJECT = "project"
    USER = "user"
    POOL = "pool"
    CLASS = "class"
    JOB = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageWish:
    """Which usage somebody asks for."""

    by: UsageBy = UsageBy.PROJECT
    since: datetime | None = None
    """None: from the first that is kept."""
    until: datetime | None = None
    """None: until now."""
    project: str = ""
    """Only this project; empty: all that one may look at."""
    pool: str = ""
    """Only this pool; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What one department, project, user, pool, class or job has used.

    Amounts are times seconds: a GPU for an hour is 3,600,000 thousandths of a GPU.
    """

    of: str
    """The name; of a job the id. Empty: projects without a department."""
    name: str = ""
    """The name of a job; else empty."""
    project: str = ""
    """The project of a job; else empty."""
    user: str = ""
    """The account that submitted a job; else empty."""
    attempts: int = 0
    """How many attempts held something in that time."""
    evicted: int = 0
    """How many of them had to make room for others."""
    held: Amounts = NO_AMOUNTS
    """What they held, each amount times seconds."""
    lost: int = 0
    """The part of the GPUs that was in vain: after the last checkpoint of attempts that did not end well."""
    borrowed: int = 0
    """The part of the GPUs that was above the quota of their project; the rest was within it."""
    busy: int | None = None
    """The part of the GPUs in which something ran on them, as far as they told; None: none did."""
    median_wait: timedelta | None = None
    """How long half of the attempts that were placed in that time had been queued at most; None: none was."""
    long_wait: timedelta | None = None
    """How long 95 % of these had been queued at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """What was used in a span of time, the largest first."""

    by: UsageBy
    since: datetime | None
    """None: from the first that is kept."""
    until: datetime
    rows: tuple[UsageRow, ...] = ()
    kept_since: datetime | None = None
    """What ended before is not kept any more; None: all is."""
