"""Quotas as values: amounts, what a department or a project may have in a pool, and the rules for that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from muster.domain.jobs.interactive import NEVER_IDLE, SHORTEST_IDLE
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.placing.mig import thousandths
from muster.domain.jobs.rules.job_values import filled
from muster.domain.quantity import MAX_DURATION, format_cpus, format_duration, size_text
from muster.domain.quoting import quote

UNLIMITED_AMOUNT: Final = 1 << 60
"""An amount of which there is never enough to reach it."""
MILLIS_PER_GPU = 1000
BYTES_PER_MIB = 1 << 20
LARGEST_WEIGHT = 1000
LARGEST_RANK = 100
LARGEST_JOB_TERM = 1_000_000
"""The largest number of jobs that a term can name."""
LONGEST_PROTECTION = timedelta(days=30)
LONGEST_EVICTION_GRACE = timedelta(minutes=5)
"""The longest time that an evicted job gets to end."""
MOST_UNITS = 2000
"""Departments and projects of one fleet."""
MOST_TYPES = 16
"""Types of nodes that a project may be confined to."""
MOST_POOLS = 64
"""Pools in which one unit has terms."""


class Amounts(NamedTuple):
    """Resources as whole numbers, so that no sum of them is ever rounded."""

    gpus: int = 0
    """Thousandths of GPUs."""
    cpus: int = 0
    """Thousandths of CPUs."""
    memory: int = 0
    """Mebibytes."""

    def plus(self, other: "Amounts") -> "Amounts":
        """Both together."""
        return Amounts(self.gpus + other.gpus, self.cpus + other.cpus, self.memory + other.memory)

    def times(self, count: int) -> "Amounts":
        """The amounts, taken so many times."""
        return Amounts(self.gpus * count, self.cpus * count, self.memory * count)


RESOURCES = Amounts._fields
"""Names of the resources, in the order of amounts."""
WHOLE_LOTS = Amounts(gpus=MILLIS_PER_GPU, cpus=1000, memory=1024)
"""A whole GPU, CPU and gibibyte: what a surplus is dealt out in."""
NO_AMOUNTS = Amounts()
WITHOUT_BOUNDS = Amounts(UNLIMITED_AMOUNT, UNLIMITED_AMOUNT, UNLIMITED_AMOUNT)


def amounts_of(spec: JobSpec, rank: int) -> Amounts:
    """What one execution of a job counts."""
    resources = spec.role_of(rank).resources
    each = MILLIS_PER_GPU if resources.mig is None else thousandths(resources.mig)
    if (portion := resources.portion) is not None:
        each = portion.thousandths
    return Amounts(resources.gpus * each, resources.cpu_millis, -(-(resources.memory or 0) // BYTES_PER_MIB))


def amounts_of_job(spec: JobSpec) -> Amounts:
    """What a job counts as a whole."""
    total = NO_AMOUNTS
    for role, ranks in spec.ranks_by_role():
        total = total.plus(amounts_of(spec, ranks.start).times(role.count))
    return total


class AmountBounds(NamedTuple):
    """Amounts of which each may be left open."""

    gpus: int | None = None
    """None: nothing is said of it."""
    cpus: int | None = None
    memory: int | None = None

    def over(self, other: "AmountBounds") -> "AmountBounds":
        """These, and where they say nothing the others."""
        return AmountBounds(*(theirs if own is None else own for own, theirs in zip(self, other, strict=True)))

    def amounts(self, otherwise: int) -> Amounts:
        """The amounts, with this one where nothing is said."""
        return Amounts(*(otherwise if own is None else own for own in self))


OPEN_BOUNDS = AmountBounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaTerms:
    """What a department or a project may have in a pool; None: nothing is said of it."""

    quota: AmountBounds = OPEN_BOUNDS
    """What is promised to it."""
    limit: AmountBounds = OPEN_BOUNDS
    """What it never has more than."""
    weight: int | None = None
    """The part that it gets of what is left over; 0: only what nobody with a weight wants."""
    rank: int | None = None
    """Higher ranks get what is left over first."""
    min_runtime: timedelta | None = None
    """How long an attempt is safe from other projects."""
    min_runtime_within: timedelta | None = None
    """How long an attempt is safe from other jobs of its project."""
    max_running: int | None = None
    """Jobs that may hold something at a time, in all pools together."""
    max_queued: int | None = None
    """Jobs that may be queued at a time, in all pools together."""
    max_running_per_user: int | None = None
    """Jobs of one account that may hold something at a time, in all pools together."""
    job_class: JobClass | None = None
    """The class of jobs that name none."""
    grace_max: timedelta | None = None
    """The longest time that an evicted job gets to end."""
    idle: timedelta | None = None
    """How long an attempt may go unused where its job says nothing of it; zero: for ever."""
    types: tuple[str, ...] | None = None
    """Values of the label `type` of the nodes that its jobs may use."""

    def over(self, other: "QuotaTerms") -> "QuotaTerms":
        """These terms, and where they say nothing the others."""
        said = {name: value for name in _PLAIN if (value := getattr(self, name)) is not None}
        return replace(other, quota=self.quota.over(other.quota), limit=self.limit.over(other.limit), **said)

    def faults(self) -> Iterator[str]:
        """What is wrong with these terms, a sentence each."""
        for name, bounds in (("quota", self.quota), ("limit", self.limit)):
            if any(bound is not None and not 0 <= bound <= UNLIMITED_AMOUNT for bound in bounds):
                yield f"{name} must not be below zero"
        for low, high, name in _NUMBERS:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                yield f"{name} must be from {low} to {high}, not {value}"
        for name, longest in _DURATIONS.items():
            value = getattr(self, name)
            if value is not None and not timedelta() <= value <= longest:
                yield f"{name} must be at most {longest}, not {value}"
        if self.idle is not None and self.idle != NEVER_IDLE and not SHORTEST_IDLE <= self.idle <= MAX_DURATION:
            yield f"idle must be 0 or at least {format_duration(SHORTEST_IDLE)}, not {format_duration(self.idle)}"
        if self.types is not None:
            yield from _faults_of_types(self.types)


def _faults_of_types(types: tuple[str, ...]) -> Iterator[str]:
    if not types:
        yield "types must name one type of nodes at least"
    if len(types) > MOST_TYPES:
        yield f"types names {len(types)}, and {MOST_TYPES} are the most"
    for name in types:
        if wrong := filled(name):
            yield f"types: {quote(name)} {wrong.message}"


_PLAIN = tuple(each.name for each in fields(QuotaTerms) if each.name not in {"quota", "limit"})
_NUMBERS = (
    (0, LARGEST_WEIGHT, "weight"),
    (-LARGEST_RANK, LARGEST_RANK, "rank"),
    (0, LARGEST_JOB_TERM, "max_running"),
    (0, LARGEST_JOB_TERM, "max_queued"),
    (0, LARGEST_JOB_TERM, "max_running_per_user"),
)
_DURATIONS: Mapping[str, timedelta] = {
    "min_runtime": LONGEST_PROTECTION,
    "min_runtime_within": LONGEST_PROTECTION,
    "grace_max": LONGEST_EVICTION_GRACE,
}
OF_ALL_POOLS = ("max_running", "max_queued", "max_running_per_user", "job_class", "types")
"""Terms that cannot be other in one pool than in another."""
NO_QUOTA_TERMS = QuotaTerms()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTerms:
    """The terms of a department or a project: those for all pools, and what differs in some."""

    everywhere: QuotaTerms = NO_QUOTA_TERMS
    pools: Mapping[str, QuotaTerms] = field(default_factory=dict)

    def in_pool(self, pool: str) -> QuotaTerms:
        """What holds in a pool."""
        own = self.pools.get(pool)
        return self.everywhere if own is None else own.over(self.everywhere)

    def with_pool(self, pool: str, terms: QuotaTerms) -> "UnitTerms":
        """These terms with others in one pool; an empty name stands for all pools."""
        if not pool:
            return replace(self, everywhere=terms)
        others = {name: each for name, each in self.pools.items() if name != pool}
        return replace(self, pools=others if terms == NO_QUOTA_TERMS else {**others, pool: terms})

    def of_pool(self, pool: str) -> QuotaTerms:
        """What is said of one pool alone; an empty name stands for all pools."""
        return self.pools.get(pool, NO_QUOTA_TERMS) if pool else self.everywhere

    def faults(self) -> Iterator[str]:
        """What is wrong with these terms, a sentence each."""
        yield from self.everywhere.faults()
        if len(self.pools) > MOST_POOLS:
            yield f"there are terms for {len(self.pools)} pools, and at most {MOST_POOLS} can have some"
        for pool, terms in self.pools.items():
            for fault in terms.faults():
                yield f"pool {pool}: {fault}"
            for name in OF_ALL_POOLS:
                if getattr(terms, name) is not None:
                    yield f"pool {pool}: {name.removeprefix('job_')} holds in all pools, so it cannot be set for one"


WITHOUT_TERMS = UnitTerms()


class UnitKind(StrEnum):
    """What a quota unit is."""

    DEPARTMENT = "department"  #: several projects together
    PROJECT = "project"  #: whose jobs count


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUnit:
    """A department or a project, as far as quotas are concerned."""

    name: str
    kind: UnitKind
    department: str = ""
    """The department that a project belongs to; empty: none."""
    terms: UnitTerms = WITHOUT_TERMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Department:
    """Several projects that are promised something together."""

    name: str
    created_at: datetime
    terms: UnitTerms = WITHOUT_TERMS

    @property
    def unit(self) -> QuotaUnit:
        """The department, as far as quotas are concerned."""
        return QuotaUnit(name=self.name, kind=UnitKind.DEPARTMENT, terms=self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitChange:
    """One department or project, as it was when somebody looked, and as it shall be."""

    before: QuotaUnit | None
    """None: there was none of that name."""
    after: QuotaUnit | None
    """None: there shall be none."""

    @property
    def name(self) -> str:
        """The unit that changes."""
        unit = self.before if self.after is None else self.after
        assert unit is not None, "a change is of something"
        return unit.name


def amount_text(resource: str, amount: int) -> str:
    """An amount of a resource as people read it: `24 GPUs`, `0.5 CPUs`, `16 GiB`."""
    if amount >= UNLIMITED_AMOUNT:
        return "unlimited"
    if resource == "memory":
        return size_text(amount * BYTES_PER_MIB)
    noun = resource.removesuffix("s").upper()
    return f"1 {noun}" if amount == MILLIS_PER_GPU else f"{format_cpus(amount)} {noun}s"
