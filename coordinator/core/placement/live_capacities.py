"""Capacities that follow what happens to their nodes."""

from collections.abc import Callable, Iterable

from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.capacity import Capacity
from muster.domain.ids import NodeId


class LiveCapacities:
    """Capacities that are worked out anew when they are needed after something about their node changed."""

    def __init__(self, work_out: Callable[[NodeId], Capacity], nodes: Iterable[NodeId] = ()) -> None:
        self._work_out = work_out
        self._capacities = Capacities()
        self._stale: set[NodeId] = set(nodes)

    def touch(self, node: NodeId) -> None:
        """Hear that something about a node changed."""
        self._stale.add(node)

    def forget(self, node: NodeId) -> None:
        """Hear that a node is gone."""
        self._stale.discard(node)
        self._capacities.drop(node)

    def of(self, node: NodeId) -> Capacity:
        """The capacity of one node, as it is now."""
        if node in self._stale:
            self._stale.discard(node)
            self._capacities.put(self._work_out(node))
        return self._capacities.of(node)

    def fresh(self) -> Capacities:
        """All capacities as they are now; not to be changed, and of use until the next change."""
        if self._stale:
            stale, self._stale = self._stale, set()  # one that was large is slow to walk even when it is empty
            for node in stale:
                self._capacities.put(self._work_out(node))
        return self._capacities
