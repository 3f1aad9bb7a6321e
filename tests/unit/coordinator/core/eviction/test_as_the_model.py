"""The core evicts whom the plain model evicts, which tries all sets and knows no search, in small pools at random."""

import pytest

from coordinator.core.scheduling.eviction.victims import FEW_CANDIDATES
from tests.unit.coordinator.core.eviction.core_pool import CorePool
from tests.unit.coordinator.core.eviction.model_comparison import orders, shares, victims
from tests.unit.coordinator.core.eviction.random_pools import random_pool

SEEDS = range(400)
DEARER = 8
"""How many times as much as the best set one may cost that was found by a search."""


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_stand_in_the_order_of_the_model(seed: int) -> None:
    core = CorePool(random_pool(seed), FEW_CANDIDATES)
    for cores, models in (orders(core), shares(core)):
        assert cores == models


@pytest.mark.parametrize("seed", SEEDS)
def test_of_few_gangs_the_best_set_is_found(seed: int) -> None:
    for job, models, cores in victims(CorePool(random_pool(seed), 10)):
        assert cores == models, f"for {job}"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_searches_find_a_set_where_there_is_one_and_it_is_not_much_dearer(seed: int) -> None:
    pool = random_pool(seed)
    core = CorePool(pool, 0)
    for job, models, cores in victims(core):
        assert bool(cores) == bool(models), f"for {job}: {models} {cores}"
        if cores:
            best, found = core.measure(job, sorted(models)), core.measure(job, sorted(cores))
            assert found.lost <= DEARER * best.lost or found[:4] > best[:4]
            if core.bar(job) is None:
                gone = [each for each in pool.running if each.name in cores]
                for one in gone:
                    others = [each for each in gone if each is not one]
                    assert pool.seats(job, pool.free(others)) is None, f"{one} was not needed for {job}"
