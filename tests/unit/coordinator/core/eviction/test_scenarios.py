"""The scenarios of shares and evictions: the plain model and the core's decisions give what the table expects."""

import pytest

from coordinator.core.scheduling.eviction.victims import FEW_CANDIDATES
from tests.unit.coordinator.core.eviction.core_pool import CorePool
from tests.unit.coordinator.core.eviction.scenarios import SCENARIOS, Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_plain_model_does_what_is_expected(scenario: Scenario) -> None:
    pool = scenario.pool().settle()
    assert frozenset(job.name for job in pool.running) == scenario.runs
    assert tuple(pool.evicted) == scenario.evicted


@pytest.mark.parametrize("few", [FEW_CANDIDATES, 0], ids=["all sets", "three searches"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_core_does_what_is_expected(scenario: Scenario, few: int) -> None:
    pool = CorePool(scenario.pool(), few).settle()
    assert frozenset(job.name for job in pool.plain.running) == scenario.runs
    assert tuple(pool.evicted) == scenario.evicted
