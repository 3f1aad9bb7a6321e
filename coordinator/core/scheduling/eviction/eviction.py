"""The decision whom to evict for a job that finds no room: the first rule that finds victims counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coordinator.core.scheduling.eviction.entitlement import (
    EvictionBound,
    EvictionRule,
    OpenedGangs,
    is_of_others,
    rules_for,
    without_vain,
)
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang, Seats
from coordinator.core.scheduling.eviction.victims import FEW_CANDIDATES, VictimSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Gangs that are to be stopped for a job."""

    rule: str
    victims: tuple[RunningGang, ...]


def evict(
    seeker: RoomSeeker, seats: Seats, running: Sequence[RunningGang], few: int = FEW_CANDIDATES
) -> Eviction | None:
    """The gangs to stop for a job, out of all that run in its pool; `few`: as for `VictimSearch`. None: nobody is."""
    for rule, search in _searches(seeker, seats, running, few, whatever_age=False):
        victims = search.best()
        if victims is not None:
            return Eviction(rule=rule.name, victims=victims)
    return None


def waits_for_safety(seeker: RoomSeeker, seats: Seats, running: Sequence[RunningGang]) -> bool:
    """Whether there would be victims for a job if none of these were safe for some time."""
    if not any(gang.is_safe or gang.is_safe_within for gang in running):
        return False
    searches = _searches(seeker, seats, running, FEW_CANDIDATES, whatever_age=True)
    return any(search.finds_any for _, search in searches)


def _searches(
    seeker: RoomSeeker, seats: Seats, running: Sequence[RunningGang], few: int, *, whatever_age: bool
) -> Iterator[tuple[EvictionRule, VictimSearch]]:
    """One search for each rule that opens some gangs, in turn, unless one before it has looked at the same ones."""
    looked_at = set[tuple[EvictionBound | None, tuple[RunningGang, ...]]]()
    opened = OpenedGangs(seeker)
    gangs = running if whatever_age else [gang for gang in running if opened.may_have(gang)]
    for rule in rules_for(seeker):
        found = [gang for gang in gangs if opened.has(gang, rule, whatever_age=whatever_age)]
        candidates = without_vain(rule, seeker, found)
        # Without gangs of others a rule is what it opens, as its bound decides about these alone.
        key = (rule.bound if any(is_of_others(seeker, gang) for gang in candidates) else None, tuple(candidates))
        if candidates and key not in looked_at:
            looked_at.add(key)
            yield rule, VictimSearch(seeker, seats, rule, candidates, few)
