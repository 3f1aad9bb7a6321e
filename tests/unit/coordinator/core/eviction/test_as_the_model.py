"""The core evicts whom the plain model evicts, which tries all sets and knows no search, in small pools at random."""

import pytest

from coordinator.core.scheduling.eviction.eviction import Eviction
from coordinator.core.scheduling.eviction.victims import FEW_CANDIDATES
from tests.unit.coordinator.core.eviction.core_pool import CorePool
from tests.unit.coordinator.core.eviction.plain_model import PlainPool
from tests.unit.coordinator.core.eviction.plain_rooms import PlainJob
from tests.unit.coordinator.core.eviction.random_pools import random_pool

SEEDS = range(400)
DEARER = 8
"""How many times as much as the best set one may cost that was found by a search."""


def told(pool: PlainPool, few: int) -> list[tuple[PlainJob, frozenset[str], frozenset[str]]]:
    """Each job that waits, whom the model evicts for it and whom the core does; nobody: an empty set."""
    core = CorePool(pool, few)
    found = []
    for job in pool.in_order():
        victims, decided = pool.victims(job, {}), core.decide(job, {})
        gangs = decided.victims if isinstance(decided, Eviction) else ()
        found.append(
            (job, frozenset(each.name for each in victims or ()), frozenset(str(gang.attempt.job) for gang in gangs))
        )
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_stand_in_the_order_of_the_model(seed: int) -> None:
    pool = random_pool(seed)
    core = CorePool(pool, FEW_CANDIDATES)
    assert [job.name for job in core.in_order()] == [job.name for job in pool.in_order()]
    core.units.share_out("default")
    shares = {name: core.units.path(name, "default")[-1].share[0] for name in pool.units}
    assert shares == pool.shares()


@pytest.mark.parametrize("seed", SEEDS)
def test_of_few_gangs_the_best_set_is_found(seed: int) -> None:
    pool = random_pool(seed)
    for job, models, cores in told(pool, 10):
        assert cores == models, f"for {job}"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_searches_find_a_set_where_there_is_one_and_it_is_not_much_dearer(seed: int) -> None:
    pool = random_pool(seed)
    core = CorePool(pool, 0)
    for job, models, cores in told(pool, 0):
        assert bool(cores) == bool(models), f"for {job}: {models} {cores}"
        if cores:
            best, found = core.measure(job, sorted(models)), core.measure(job, sorted(cores))
            assert found.lost <= DEARER * best.lost or found[:4] > best[:4]
            if core.bar(job) is None:
                gone = [each for each in pool.running if each.name in cores]
                for one in gone:
                    others = [each for each in gone if each is not one]
                    assert pool.seats(job, pool.free(others)) is None, f"{one} was not needed for {job}"
