"""Which of two waiting jobs goes first, and which must wait for its own project to hold less.

A job's precedence is compared from the department down. Within a project it is class, priority and first come; between
projects priority counts for nothing.
"""

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from coordinator.core.sharing.pool_standings import Path
from coordinator.core.sharing.standing import Standing
from coordinator.core.sharing.unit import UNIT_LEVELS, Unit
from muster.domain.fleet.quota import UNLIMITED_AMOUNT, WITHOUT_BOUNDS, Amounts
from muster.domain.jobs.job_class import JobClass

MILLIONTHS = 1_000_000

PlaceInProject: TypeAlias = tuple[int, int, int]
"""Class, priority below zero, and sequence number: the order of the jobs of one project."""

UnitKey: TypeAlias = tuple[int, int, int, int]
Precedence: TypeAlias = tuple[tuple[UnitKey, ...], PlaceInProject]
"""The least goes first."""


class Tier(IntEnum):
    """What a job would use if it were placed now; the lower goes first."""

    QUOTA = 0  #: what its unit is promised
    SHARE = 1  #: what its unit should have now
    BORROWED = 2  #: what others should have
    SPARE = 3  #: what nobody else wants


def tier(standing: Standing, size: Amounts, counted: tuple[int, ...], job_class: JobClass) -> Tier:
    """What a job of this size would use of what its unit may have."""
    if job_class is JobClass.SPARE:
        return Tier.SPARE
    quota, share = standing.entitlement.quota, standing.share
    within_quota = within_share = True
    for place in counted:
        if size[place]:
            load = standing.load(place) + size[place]
            within_quota = within_quota and load <= quota[place]
            within_share = within_share and load <= share[place]
    return Tier.QUOTA if within_quota else Tier.SHARE if within_share else Tier.BORROWED


def precedence(
    path: Path, size: Amounts, counted: tuple[int, ...], job_class: JobClass, place: PlaceInProject
) -> Precedence:
    """Where a job stands among all that wait in its pool.

    A project without a department stands for one, too, so that those with and without can be compared. Where no
    resource counts, projects do not count either.
    """
    if not counted:
        return ((), place)
    keys = [_unit_key(standing, size, counted, job_class) for standing in path]
    keys += keys[-1:] * (UNIT_LEVELS - len(keys))
    return (tuple(keys), place)


def _unit_key(standing: Standing, size: Amounts, counted: tuple[int, ...], job_class: JobClass) -> UnitKey:
    of_tier = tier(standing, size, counted, job_class)
    without = with_it = 0
    for place in counted:
        if not size[place]:
            continue
        quota, load = standing.entitlement.quota[place], standing.load(place)
        bound = quota if of_tier is Tier.QUOTA and quota else max(1, standing.share[place])
        if bound < UNLIMITED_AMOUNT:
            without = max(without, load * MILLIONTHS // bound)
            with_it = max(with_it, (load + size[place]) * MILLIONTHS // bound)
    return (of_tier, -standing.entitlement.rank, without, with_it)


class BarKind(IntEnum):
    """Which term keeps a job from being placed."""

    LIMIT = 1  #: its unit would hold more than its limit
    QUOTA = 2  #: guaranteed jobs of its unit would hold more than its quota
    MAX_RUNNING = 3  #: as many jobs of its unit run as may
    MAX_RUNNING_PER_USER = 4  #: as many jobs of its owner run there as may
    LONGEST_RUN = 6  #: it may run for longer than anything may in this pool
    TURN = 5  #: another job of its unit has waited for a term for so long that it goes first


class Bar(NamedTuple):
    """A term that keeps a job from being placed now, and what it says."""

    kind: BarKind
    unit: str
    place: int = 0
    """The resource that is short, by its place in amounts."""
    holds: int = 0
    """What counts for the term now: amounts, jobs, or seconds."""
    bound: int = 0
    """What the term allows."""
    pool: str = ""
    """Where the term holds; empty: in all pools."""
    waits_for: str = ""
    """The job that goes first; empty: none."""


def barred(
    path: Path, unit: Unit, size: Amounts, counted: tuple[int, ...], job_class: JobClass, owner: str
) -> Bar | None:
    """The first term, from the department down, that a job would break if it were placed now; None: there is none."""
    for standing in path:
        quota, limit = standing.entitlement.quota, standing.entitlement.limit
        if limit == WITHOUT_BOUNDS and job_class is not JobClass.GUARANTEED:
            continue  # as of most units
        for place, wanted in enumerate(size):
            if not wanted:
                continue
            held = max(standing.held[place], standing.load(place))
            if held + wanted > limit[place]:
                return Bar(BarKind.LIMIT, standing.name, place, held, limit[place])
            if job_class is JobClass.GUARANTEED and place in counted and standing.fixed[place] + wanted > quota[place]:
                return Bar(BarKind.QUOTA, standing.name, place, standing.fixed[place], quota[place])
    for each in unit.line():
        most, most_each = each.terms.everywhere.max_running, each.terms.everywhere.max_running_per_user
        if most is not None and each.running >= most:
            return Bar(BarKind.MAX_RUNNING, each.name, 0, each.running, most)
        running = each.running_of.get(owner, 0)
        if most_each is not None and running >= most_each:
            return Bar(BarKind.MAX_RUNNING_PER_USER, each.name, 0, running, most_each)
    return None


def breaks_terms(path: Path, size: Amounts, counted: tuple[int, ...], job_class: JobClass) -> bool:
    """Whether units have more than they may, of what a job of this size asks for, with what it has claimed already."""
    for standing in path:
        quota, limit = standing.entitlement.quota, standing.entitlement.limit
        for place in (place for place, wanted in enumerate(size) if wanted):
            fixed = job_class is JobClass.GUARANTEED and place in counted and standing.fixed[place] > quota[place]
            if fixed or standing.load(place) > limit[place]:
                return True
    return False


def may_be_seated(path: Path, unit: Unit, size: Amounts, owner: str) -> bool:
    """Whether a job may hold what it has claimed as long as others that are leaving still hold what they have."""
    for standing in path:
        limit = standing.entitlement.limit
        if any(wanted and standing.held[place] + wanted > limit[place] for place, wanted in enumerate(size)):
            return False
    for each in unit.line():
        most, most_each = each.terms.everywhere.max_running, each.terms.everywhere.max_running_per_user
        if (most is not None and each.running >= most) or (
            most_each is not None and each.running_of.get(owner, 0) >= most_each
        ):
            return False
    return True


def never(path: Path, size: Amounts, counted: tuple[int, ...], job_class: JobClass) -> Bar | None:
    """The term that a job would break even if nothing of its units ran; None: there is none."""
    for standing in path:
        quota, limit = standing.entitlement.quota, standing.entitlement.limit
        for place, wanted in enumerate(size):
            if wanted > limit[place]:
                return Bar(BarKind.LIMIT, standing.name, place, 0, limit[place])
            if job_class is JobClass.GUARANTEED and place in counted and wanted > quota[place]:
                return Bar(BarKind.QUOTA, standing.name, place, 0, quota[place])
    return None
