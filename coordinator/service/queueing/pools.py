"""Operations on pools: which nodes are in one, and what holds there."""

from collections.abc import Sequence

from coordinator.completion import completed
from coordinator.core.answers import PoolKept, Refused
from coordinator.core.events import PoolRemoved, PoolSet
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.causes import error_of
from coordinator.service.operations import Operation, Operations
from coordinator.trust.caller import Caller
from coordinator.trust.registry import Registry
from coordinator.views.pools import pool_views
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.pool import Pool, told_of_pool
from muster.domain.fleet.standing_view import PoolView


class PoolOperations:
    """What callers may do with pools."""

    def __init__(self, operations: Operations, engine: Engine, registry: Registry) -> None:
        self._operations = operations
        self._engine = engine
        self._registry = registry

    async def list(self, caller: Caller) -> Sequence[PoolView]:
        """All pools, those that are set and those that have nodes, by name; they concern whoever has jobs."""
        async with self._operations.begin(caller, "pools.list"):
            return await self._engine.query(lambda cluster, _: pool_views(cluster), after=Freshness.COMMITTED)

    async def put(self, caller: Caller, pool: Pool, *, anyway: bool = False) -> Sequence[str]:
        """Set a pool, in place of what was said of it; warnings, a sentence each."""
        async with self._operations.begin(caller, "pools.put", pool.name) as operation:
            for fault in pool.faults():
                raise InvalidJobError(f"pool {pool.name}: {fault}")
            kept = await self._apply(operation, PoolSet(pool=pool, anyway=anyway, cause=operation.cause))
            return kept.warnings

    async def remove(self, caller: Caller, name: str) -> tuple[Pool, Sequence[str]]:
        """Say nothing of a pool any longer; the pool as it was, and warnings."""
        async with self._operations.begin(caller, "pools.remove", name) as operation:
            kept = await self._apply(operation, PoolRemoved(name=name, cause=operation.cause))
            assert kept.before is not None
            return kept.before, kept.warnings

    async def _apply(self, operation: Operation, event: PoolSet | PoolRemoved) -> PoolKept:
        """Have an event happen, and written down with what was before and what is now."""
        answer = await completed(self._engine.apply(event))
        if isinstance(answer, Refused):
            raise error_of(answer)
        assert isinstance(answer, PoolKept)
        await completed(self._registry.note((operation.done(told_of_pool(answer.before, answer.pool)),)))
        return answer
