"""The rules that say who may evict whom, in the order in which they are tried.

A unit that two jobs share is a *common unit* of them. The *side* of a victim is the child of their lowest common unit
on the victim's side. A job has a right to what is promised to its units, and others lose what is more than that.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang
from coordinator.core.sharing.standing import Standing
from muster.domain.jobs.job_class import JobClass


class EvictionBound(Enum):
    """What decides whether a unit has more than it should."""

    QUOTA = "quota"  #: what it is promised
    SHARE = "share"  #: what it should have now, but never less than it is promised

    def of(self, standing: Standing, place: int) -> int:
        """How much a unit that looks for room may have by it."""
        return standing.entitlement.quota[place] if self is EvictionBound.QUOTA else standing.share[place]

    def kept(self, standing: Standing, place: int) -> int:
        """How much nobody takes from a unit."""
        return max(self.of(standing, place), standing.entitlement.quota[place])


class EvictionRule(NamedTuple):
    """A rule opens gangs of some projects to a job; those of class spare are always open."""

    name: str
    bound: EvictionBound | None = None
    """The bound of other projects whose gangs it opens; None: it opens none of other projects."""
    own: bool = False
    """Whether it opens gangs of its own project that come after the job there."""


EVICTION_RULES = (
    EvictionRule("spare"),
    EvictionRule("quota", EvictionBound.QUOTA),
    EvictionRule("quota and own", EvictionBound.QUOTA, own=True),
    EvictionRule("share", EvictionBound.SHARE),
    EvictionRule("share and own", EvictionBound.SHARE, own=True),
    EvictionRule("own", own=True),
)
"""The first that finds victims counts."""


def rules_for(seeker: RoomSeeker) -> Iterable[EvictionRule]:
    """The rules that a job may go by: one that a term bars can only have it lifted, one of class spare has none."""
    if seeker.job_class is JobClass.SPARE:
        return ()
    if seeker.lift is not None:
        return EVICTION_RULES[-1:]
    return EVICTION_RULES if seeker.counted else (EVICTION_RULES[0], EVICTION_RULES[-1])


class OpenedGangs:
    """The gangs that rules open to one job at one moment, each by itself."""

    def __init__(self, seeker: RoomSeeker) -> None:
        self._seeker = seeker
        self._over: dict[tuple[Standing, EvictionBound], bool] = {}
        """Whether the side of a project has more than nobody takes."""

    def has(self, gang: RunningGang, rule: EvictionRule, *, whatever_age: bool = False) -> bool:
        """Whether a rule opens a gang to the job; `whatever_age`: even if it is safe for some time."""
        seeker = self._seeker
        if gang.job_class is JobClass.SPARE:
            return seeker.job_class is not JobClass.SPARE
        if gang.job_class is JobClass.GUARANTEED:
            return False
        if gang.path[-1] is seeker.project:
            return rule.own and gang.standing > seeker.standing and (whatever_age or not gang.is_safe_within)
        if rule.bound is None or (gang.is_safe and not whatever_age):
            return False
        key = (gang.path[-1], rule.bound)
        over = self._over.get(key)
        if over is None:
            over = self._over[key] = is_over(side_of(seeker, gang), rule.bound, seeker.counted)
        return over

    def may_have(self, gang: RunningGang) -> bool:
        """Whether some rule may open a gang to the job, as it is not safe; looks at less than the rules do."""
        if gang.job_class is JobClass.SPARE:
            return True
        return not (gang.is_safe_within if gang.path[-1] is self._seeker.project else gang.is_safe)


def is_over(standing: Standing, bound: EvictionBound, counted: Sequence[int], taken: Sequence[int] = (0, 0, 0)) -> bool:
    """Whether a unit has more of any resource than it should, after so much was taken from it."""
    return any(standing.load(place) - taken[place] > bound.kept(standing, place) for place in counted)


def depth_of_common(seeker: RoomSeeker, gang: RunningGang) -> int:
    """How many units they share, from the department down."""
    depth = 0
    for own, theirs in zip(seeker.path, gang.path, strict=False):
        if own is not theirs:
            break
        depth += 1
    return depth


def is_of_others(seeker: RoomSeeker, gang: RunningGang) -> bool:
    """Whether a gang is of another project, and not spare, so that bounds decide about it."""
    return gang.job_class is not JobClass.SPARE and gang.path[-1] is not seeker.project


def side_of(seeker: RoomSeeker, gang: RunningGang) -> Standing:
    """The child of the unit that both share, on the side of a gang of another project."""
    return gang.path[depth_of_common(seeker, gang)]


def inside(standing: Standing, gangs: Iterable[RunningGang]) -> list[int]:
    """What gangs of a unit have together, by resource."""
    total = [0, 0, 0]
    for gang in gangs:
        if standing in gang.path:
            for place, amount in enumerate(gang.size):
                total[place] += amount
    return total


def lacks(seeker: RoomSeeker, gangs: Sequence[RunningGang], bound: EvictionBound, depth: int) -> list[Standing]:
    """Units of the job, below the common unit at this depth, that would have more than they have a right to."""
    found = []
    for standing in seeker.path[depth:]:
        taken = inside(standing, gangs)
        for place in seeker.counted:
            after = standing.load(place) - taken[place] + seeker.size[place]
            if seeker.size[place] and after > bound.of(standing, place):
                found.append(standing)
                break
    return found


def without_vain(rule: EvictionRule, seeker: RoomSeeker, gangs: Sequence[RunningGang]) -> list[RunningGang]:
    """The gangs without those of other projects that no set may have in it, whatever else of these goes, too.

    With the seats of one of these, units of the job would always have more than they have a right to.
    """
    lacking: dict[int, bool] = {}
    found = []
    for gang in gangs:
        if is_of_others(seeker, gang):
            assert rule.bound is not None, "only a bound opens gangs of other projects"
            depth = depth_of_common(seeker, gang)
            if depth not in lacking:
                lacking[depth] = bool(lacks(seeker, gangs, rule.bound, depth))
            if lacking[depth]:
                continue
        found.append(gang)
    return found


def allows(rule: EvictionRule, seeker: RoomSeeker, gangs: Sequence[RunningGang]) -> bool:
    """Whether a rule lets a job evict all of these together."""
    if seeker.lift is not None:
        own = [gang for gang in gangs if gang.path[-1] is seeker.project]
        freed = inside(seeker.project, own)
        if len(own) < seeker.lift.jobs or any(
            freed[place] < wanted for place, wanted in enumerate(seeker.lift.amounts)
        ):
            return False
    others = [gang for gang in gangs if is_of_others(seeker, gang)]
    if not others:
        return True
    assert rule.bound is not None, "only a bound opens gangs of other projects"
    depth = min(depth_of_common(seeker, gang) for gang in others)
    if lacks(seeker, gangs, rule.bound, depth) or not _all_over(rule.bound, seeker, gangs, others):
        return False
    return rule.bound is EvictionBound.QUOTA or _lessens_want(seeker, gangs, others)


def _all_over(
    bound: EvictionBound, seeker: RoomSeeker, gangs: Sequence[RunningGang], others: Sequence[RunningGang]
) -> bool:
    """Whether the side of each victim still has more than it should before the last of them goes."""
    preemptible = [gang for gang in gangs if gang.job_class is not JobClass.SPARE]
    for side in {side_of(seeker, gang) for gang in others}:
        of_side = [gang for gang in preemptible if side in gang.path]
        total = inside(side, of_side)
        before = ([all_ - its for all_, its in zip(total, last.size, strict=True)] for last in of_side)
        if not any(is_over(side, bound, seeker.counted, taken) for taken in before):
            return False
    return True


def _lessens_want(seeker: RoomSeeker, gangs: Sequence[RunningGang], others: Sequence[RunningGang]) -> bool:
    """Whether the children of every common unit together lack less of their shares afterwards."""
    for depth in {depth_of_common(seeker, gang) for gang in others}:
        change = 0
        sides = {gang.path[depth] for gang in gangs if len(gang.path) > depth and _shares_top(seeker, gang, depth)}
        for standing in {seeker.path[depth], *sides}:
            taken, gained = inside(standing, gangs), standing is seeker.path[depth]
            for place in seeker.counted:
                load, share = standing.load(place), standing.share[place]
                after = load - taken[place] + (seeker.size[place] if gained else 0)
                change += max(0, share - after) - max(0, share - load)
        if change >= 0:
            return False
    return True


def _shares_top(seeker: RoomSeeker, gang: RunningGang, depth: int) -> bool:
    """Whether they share the first so many units."""
    return all(own is theirs for own, theirs in zip(seeker.path[:depth], gang.path[:depth], strict=True))
