"""The decision whom to evict for a job that finds no room: the first rule that finds victims counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.core.scheduling.eviction.entitlement import may_be_victim, rules_for, without_vain
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang, Seats
from coordinator.core.scheduling.eviction.victims import FEW_CANDIDATES, VictimSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Gangs that are to be stopped for a job."""

    rule: str
    victims: tuple[RunningGang, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoVictims:
    """Nobody is evicted for a job now."""

    safe: bool = False
    """Whether there would be victims if some were not safe for some time."""


def evict(
    seeker: RoomSeeker, seats: Seats, running: Sequence[RunningGang], few: int = FEW_CANDIDATES
) -> Eviction | NoVictims:
    """The gangs to stop for a job, out of all that run in its pool; `few`: as for `VictimSearch`."""
    victims = _first(seeker, seats, running, few, whatever_age=False)
    if victims is not None:
        return victims
    if not any(gang.is_safe or gang.is_safe_within for gang in running):
        return NoVictims()
    return NoVictims(safe=_first(seeker, seats, running, few, whatever_age=True) is not None)


def _first(
    seeker: RoomSeeker, seats: Seats, running: Sequence[RunningGang], few: int, *, whatever_age: bool
) -> Eviction | None:
    for rule in rules_for(seeker):
        candidates = [gang for gang in running if may_be_victim(seeker, gang, rule, whatever_age=whatever_age)]
        victims = VictimSearch(seeker, seats, rule, without_vain(rule, seeker, candidates), few).best()
        if victims is not None:
            return Eviction(rule=rule.name, victims=victims)
    return None
