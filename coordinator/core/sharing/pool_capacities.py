"""What pools have: the sum of what their nodes add to it."""

from collections import Counter
from collections.abc import Iterator

from muster.domain.fleet.quota import NO_AMOUNTS, Amounts
from muster.domain.ids import NodeId


class PoolCapacities:
    """Amounts by pool; a node that changes costs two additions."""

    def __init__(self) -> None:
        self._nodes: dict[NodeId, tuple[str, Amounts]] = {}
        self._sums: dict[str, Amounts] = {}
        self._counts: Counter[str] = Counter()
        """How many nodes add something to each pool."""
        self._changed: dict[str, None] = {}
        self.pools: tuple[str, ...] = ()
        """Pools to which a node adds something, by name."""

    def put(self, node: NodeId, pool: str, amounts: Amounts) -> None:
        """Have a node add this to a pool, in place of what it added before."""
        old_pool, before = self._nodes.pop(node, (pool, NO_AMOUNTS))
        self._add(old_pool, before.times(-1), -1 if before != NO_AMOUNTS else 0)
        self._add(pool, amounts, 1 if amounts != NO_AMOUNTS else 0)
        if amounts != NO_AMOUNTS:
            self._nodes[node] = (pool, amounts)

    def take_changed(self) -> Iterator[tuple[str, Amounts]]:
        """Pools that have something else than when this was asked last."""
        changed, self._changed = self._changed, {}
        return ((pool, self._sums.get(pool, NO_AMOUNTS)) for pool in changed)

    def _add(self, pool: str, amounts: Amounts, nodes: int) -> None:
        self._sums[pool] = self._sums.get(pool, NO_AMOUNTS).plus(amounts)
        self._counts[pool] += nodes
        if not self._counts[pool]:
            del self._counts[pool]
        if (pool in self._counts) is not (pool in self.pools):
            self.pools = tuple(sorted(self._counts))
        self._changed[pool] = None
