"""What of the GPUs that projects hold is above their quotas, kept as meters that run while they hold something.

Whoever holds GPUs reads the meter of its project and pool at its placement and at its end, so an account of each
attempt costs the same however many others come and go meanwhile. A meter is written when the borrowed part changes.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import Execution
from muster.domain.fleet.quota import RESOURCES, UNLIMITED_AMOUNT
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL, State

_GPUS = RESOURCES.index("gpus")
_MILLION = 10**6


def reading(cluster: Cluster, project: str, pool: str, now: datetime) -> timedelta:
    """What the meter of a project in a pool says; one that has never borrowed there has none."""
    meter = cluster.records.meters.get((project, pool))
    return timedelta() if meter is None else meter.at(now)


def borrowed_part(held: int, quota: int) -> int:
    """The millionths of what is held that are above a quota."""
    return max(0, held - quota) * _MILLION // held if held else 0


class Metering:
    """The meters whose part may be another one by the end of a step."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._touched: dict[tuple[str, str], None] = {}
        self._terms_changed = False

    def moved(self, before: Execution, after: Execution) -> Execution:
        """Hear of an execution that moves; one that ends and held something, with how much of that was borrowed."""
        held, holds = _holds(before.state), _holds(after.state)
        if held == holds:
            return after
        attempt = self._cluster.attempts[after.attempt_id]
        if not attempt.pool:  # placed by a version that did not note it
            return after
        project = self._cluster.jobs[after.job].spec.project
        self._touched[project, attempt.pool] = None
        if holds:
            return after
        at = after.times[after.state]
        return replace(after, borrowed=reading(self._cluster, project, attempt.pool, at) - attempt.metered_from)

    def touch_all(self) -> None:
        """Hear that terms, or departments, are others than before."""
        self._terms_changed = True

    def settled(self, now: datetime) -> Iterator[QuotaMeter]:
        """The meters that run at another pace from now on."""
        touched = [*(self._holders() if self._terms_changed else self._touched)]
        self._touched.clear()
        self._terms_changed = False
        for project, pool in touched:
            part, meter = self._part(project, pool), self._cluster.records.meters.get((project, pool))
            if part is not None and part != (0 if meter is None else meter.millionths):
                borrowed = reading(self._cluster, project, pool, now)
                since = now if meter is None else max(now, meter.since)
                yield QuotaMeter(project=project, pool=pool, since=since, millionths=part, borrowed=borrowed)

    def _holders(self) -> Iterator[tuple[str, str]]:
        units = self._cluster.unit_load.units
        return ((project, pool) for pool in units.pools for project in self._cluster.projects)

    def _part(self, project: str, pool: str) -> int | None:
        """The millionths that are borrowed; None: nothing is held, so nobody cares how fast the meter runs."""
        units = self._cluster.unit_load.units
        standing = units.in_pool(pool).get(project)
        if standing is None or not standing.held[_GPUS]:
            return None
        quota = units.entitlement(project, pool).quota[_GPUS]
        if _GPUS not in units.counted(pool) or quota >= UNLIMITED_AMOUNT:
            return 0
        return borrowed_part(standing.held[_GPUS], quota)


def _holds(state: State) -> bool:
    return state not in NOT_PLACED and state not in TERMINAL
