"""Nodes with shared GPUs by what is left of each, so that a portion looks at those alone that may hold it."""

from collections.abc import Iterable, Iterator

from coordinator.core.placement.portions.shared_gpu import SharedGpus
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.portion import Portion


class SharingNodes:
    """An index over capacities; nodes whose GPUs are given whole, or not at all, cost nothing here."""

    def __init__(self) -> None:
        self._by_left: dict[int, dict[NodeId, None]] = {}
        """The nodes by the thousandths that are left of a shared GPU of theirs; one is under each that it has."""
        self._largest = 0
        """The most memory that a shared GPU ever had."""

    def __bool__(self) -> bool:
        return bool(self._by_left)

    def change(self, node: NodeId, before: SharedGpus, after: SharedGpus) -> None:
        """Hear that other is left of the shared GPUs of a node than before."""
        for left in {max(0, each.thousandths) for each in before}:
            del self._by_left[left][node]
            if not self._by_left[left]:
                del self._by_left[left]
        for left in {max(0, each.thousandths) for each in after}:
            self._by_left.setdefault(left, {})[node] = None
        self._largest = max(self._largest, *(each.gpu.memory for each in after), 0)

    def by_left(self, portion: Portion) -> Iterator[tuple[int, Iterable[NodeId]]]:
        """The nodes of which some shared GPU may hold a portion, by what is left of such a GPU, the fullest first."""
        least = portion.of(self._largest).thousandths
        return ((left, self._by_left[left]) for left in sorted(self._by_left) if left >= least)

    def holding(self, portion: Portion) -> Iterator[NodeId]:
        """The same nodes, each once."""
        return iter(dict.fromkeys(node for _, nodes in self.by_left(portion) for node in nodes))
