"""A look for victims leaves out searches that find nothing new, and what it keeps for the next one is what is there."""

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import timedelta
from random import Random

import pytest

from coordinator.core.scheduling.eviction.entitlement import OpenedGangs, rules_for, without_vain
from coordinator.core.scheduling.eviction.eviction import Eviction, evict, waits_for_safety
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang, Seats
from coordinator.core.scheduling.eviction.running import RunningGangs, SeenGangs
from coordinator.core.scheduling.eviction.victims import FEW_CANDIDATES, VictimSearch
from muster.domain.fleet.pool import DEFAULT_POOL
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.jobs.job_class import JobClass
from tests.builders import pass_time
from tests.unit.coordinator.core.eviction.core_pool import CorePool
from tests.unit.coordinator.core.eviction.eviction_world import of
from tests.unit.coordinator.core.eviction.random_pools import random_pool
from tests.unit.coordinator.core.random_courses import any_job, fleet, start_all


def evicted_plainly(seeker: RoomSeeker, seats: Seats, running: Sequence[RunningGang], few: int) -> Eviction | None:
    """The gangs that a job evicts where each rule has a search of its own, whatever those before it have looked at."""
    for rule in rules_for(seeker):
        found = [gang for gang in running if OpenedGangs(seeker).has(gang, rule)]
        victims = VictimSearch(seeker, seats, rule, without_vain(rule, seeker, found), few).best()
        if victims is not None:
            return Eviction(rule=rule.name, victims=victims)
    return None


@pytest.mark.parametrize("few", [0, FEW_CANDIDATES])
@pytest.mark.parametrize("seed", range(100))
def test_each_search_that_is_left_out_would_find_nothing(seed: int, few: int) -> None:
    core = CorePool(random_pool(seed), few)
    gangs = [core.gang(each) for each in core.plain.running]
    for job in core.in_order():
        if (seeker := core.seeker(job)) is not None:
            seats = core.seats(job, {})
            assert evict(seeker, seats, gangs, few) == evicted_plainly(seeker, seats, gangs, few)


@pytest.mark.parametrize("seed", range(100))
def test_who_waits_for_others_to_be_safe_no_longer_would_evict_them_if_they_were_not(seed: int) -> None:
    core = CorePool(random_pool(seed), FEW_CANDIDATES)
    gangs = [core.gang(each) for each in core.plain.running]
    unsafe = [replace(gang, is_safe=False, is_safe_within=False) for gang in gangs]
    is_any_safe = any(gang.is_safe or gang.is_safe_within for gang in gangs)
    for job in core.in_order():
        if (seeker := core.seeker(job)) is not None:
            seats = core.seats(job, {})
            evicts = is_any_safe and evicted_plainly(seeker, seats, unsafe, FEW_CANDIDATES) is not None
            assert waits_for_safety(seeker, seats, gangs) == evicts


def values(running: RunningGangs) -> list[tuple[object, ...]]:
    """Gangs by what they are, and until when they are safe."""
    names = [each.name for each in fields(RunningGang)]
    return [(*(getattr(gang, name) for name in names), running.safe_until(gang)) for gang in running.gangs]


@pytest.mark.parametrize("seed", range(10))
def test_gangs_that_another_look_has_seen_are_those_that_are_there(seed: int) -> None:
    random = Random(seed)
    w = fleet(random)
    w.promise("b", quota=0, min_runtime=timedelta(minutes=random.choice([0, 10])))
    for _ in range(8):
        w.submit(any_job(random), queue_anyway=True)
        start_all(w)
        pass_time(w, 10)
    units, seen = w.cluster.unit_load.units, SeenGangs()
    for project in ("a", "b", "default") * 2:
        seeker = RoomSeeker(
            path=units.path(project, DEFAULT_POOL),
            size=amounts_of_job(of(project)),
            job_class=JobClass.PREEMPTIBLE,
            priority=random.choice([0, 5]),
            counted=units.counted(DEFAULT_POOL),
        )
        kept, anew = (RunningGangs(w.cluster, seeker, DEFAULT_POOL, w.now, 16, each) for each in (seen, None))
        assert values(kept) == values(anew)
