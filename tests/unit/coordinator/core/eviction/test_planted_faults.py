"""The comparison with the plain model finds faults that are planted in the core's rules, each within a few pools."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator.core.scheduling.eviction.gangs import RunningGang
from coordinator.core.scheduling.eviction.measure import lost_work
from coordinator.core.sharing.precedence import Precedence
from coordinator.core.sharing.units import Units
from muster.domain.fleet.quota import QuotaUnit
from tests.unit.coordinator.core.eviction.core_pool import CorePool
from tests.unit.coordinator.core.eviction.model_comparison import difference
from tests.unit.coordinator.core.eviction.plain_model import PlainPool
from tests.unit.coordinator.core.eviction.plain_rooms import PlainJob, PlainUnit
from tests.unit.coordinator.core.eviction.random_pools import of_one_age, random_pool

SEEDS = range(400)
"""The pools in which the real core is as the model."""
FEW = 10
PAIR = 2000
"""Thousandths of two GPUs."""


class ProtectedWithoutBound(CorePool):
    """Doubles the protection of a job at each of its evictions, without an end."""

    def gang(self, job: PlainJob) -> RunningGang:
        unit, age, longer = self.plain.units[job.project], self.plain.now - job.started_at, 2**job.evictions
        safe, within = age < unit.min_runtime * longer, age < unit.min_runtime_within * longer
        return replace(super().gang(job), is_safe=safe, is_safe_within=within)


class ComparedByPriority(CorePool):
    """Compares victims of different projects by their priorities."""

    def gang(self, job: PlainJob) -> RunningGang:
        return replace(super().gang(job), level=job.priority)


class ComparedByAddress(CorePool):
    """Lets the place of a job in memory decide between victims that cost the same; here the first ones lie highest."""

    def gang(self, job: PlainJob) -> RunningGang:
        return replace(super().gang(job), order=-job.sequence)


class CheckpointTakenBack(CorePool):
    """Has a time of a checkpoint go back to the start, as if a report of before had come after it."""

    def gang(self, job: PlainJob) -> RunningGang:
        return replace(super().gang(job), lost=lost_work(job.size, self.plain.now - job.started_at))


class LeafFirst(CorePool):
    """Compares projects before their departments."""

    def _precedence(self, job: PlainJob) -> Precedence:
        units, place = super()._precedence(job)
        return (units[::-1], place)


class SharedWithTheWeightless(CorePool):
    """Gives those without a weight a part of what is left over."""

    def _unit(self, unit: PlainUnit) -> QuotaUnit:
        return super()._unit(replace(unit, weight=max(1, unit.weight)))


class RoundedUp(Units):
    """Rounds shares up, where lots of two GPUs are dealt."""

    def share_out(self, pool: str) -> None:
        super().share_out(pool)
        for unit in self:
            standing = self.in_pool(pool).get(unit.name)
            if standing is not None:
                standing.give_share(0, -(-standing.share[0] // PAIR) * PAIR)


def rounding_up(pool: PlainPool, few: int) -> CorePool:
    return CorePool(pool, few, RoundedUp())


@pytest.mark.parametrize(
    ("faulty", "found_in"),
    [
        (ProtectedWithoutBound, "victims"),
        (ComparedByPriority, "victims"),
        (ComparedByAddress, "victims"),
        (CheckpointTakenBack, "victims"),
        (LeafFirst, "order"),
        (SharedWithTheWeightless, "shares"),
        (rounding_up, "shares"),
    ],
)
def test_a_planted_fault_is_found(faulty: Callable[[PlainPool, int], CorePool], found_in: str) -> None:
    """The first pool that finds the fault finds nothing in the real core."""
    pools = (pool for seed in SEEDS for pool in (random_pool(seed), of_one_age(random_pool(seed))))
    found, pool = next((found, pool) for pool in pools if (found := difference(faulty(pool, FEW))))
    assert (found, difference(CorePool(pool, FEW))) == (found_in, "")
