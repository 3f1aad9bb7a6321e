"""All node classes: which nodes are in which, and their levels in the order of their GPUs."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.classes.group import NodeGroup
from coordinator.core.placement.classes.node_class import FreeLevel, NodeClass
from coordinator.core.placement.labels.label_index import LabelIndex
from muster.domain.ids import NodeId


class NodeClasses:
    """The classes of those nodes on which something can be placed."""

    def __init__(self, labels: LabelIndex, most: int) -> None:
        """`most`: classes at the most; where labels make more, those with most values are part of no class."""
        self._labels = labels
        self._most = most
        self._classes: dict[Hashable, NodeClass] = {}
        self._class_of: dict[NodeId, NodeClass] = {}
        self._joined: NodeClass | None = None
        """The class that a node joined last; None: it may be gone."""
        self._levels: list[tuple[NodeClass, FreeLevel]] | None = None
        """The levels of all classes, those with the fewest GPUs first; None: there are others than before."""
        self._loose: set[str] = set()

    def __contains__(self, node: object) -> bool:
        return node in self._class_of

    def __iter__(self) -> Iterator[NodeClass]:
        return iter(self._classes.values())

    @property
    def loose(self) -> frozenset[str]:
        """Labels that have too many values to be part of classes; they are looked at node by node."""
        return frozenset(self._loose)

    def levels_with(self, gpus: int) -> Sequence[tuple[NodeClass, FreeLevel]]:
        """The levels of all classes that have so many free GPUs or more, those with the fewest first."""
        if self._levels is None:
            levels = ((each, level) for each in self._classes.values() for level in each.levels.values())
            self._levels = sorted(levels, key=_gpus_of)
        return self._levels[bisect_left(self._levels, gpus, key=_gpus_of) :]

    def groups_of(self, capacity: Capacity) -> Sequence[NodeGroup]:
        """The level and the bin of a node; none: nothing can be placed on it."""
        node_class = self._class_of.get(capacity.node)
        return () if node_class is None else node_class.groups_of(capacity)

    def sample_of(self, node: NodeId) -> Capacity | None:
        """What is like a node but for labels that are part of no class; None: nothing can be placed there."""
        node_class = self._class_of.get(node)
        return None if node_class is None else node_class.sample

    def join(self, capacity: Capacity, everybody: Iterable[Capacity]) -> None:
        """Have a node in its class; `everybody`: all nodes, of which classes are made anew if there are too many."""
        before = len(self._classes)
        self._join(capacity)
        if len(self._classes) > max(before, self._most):
            self._bound(everybody)

    def move(self, before: Capacity, after: Capacity) -> None:
        """Hear that something else is free on a node of a class."""
        if self._class_of[after.node].move(before, after):
            self._levels = None

    def leave(self, capacity: Capacity) -> None:
        """Have a node in no class any more."""
        node_class = self._class_of.pop(capacity.node)
        if node_class.leave(capacity):
            self._levels = None
        if not node_class.levels:
            del self._classes[_traits(node_class.sample.labels, capacity)]
            self._joined = None

    def _join(self, capacity: Capacity) -> None:
        node_class = self._class_of[capacity.node] = self._class_for(capacity)
        if node_class.enter(capacity):
            self._levels = None

    def _class_for(self, capacity: Capacity) -> NodeClass:
        """The class to which a node belongs, by its traits; mostly that of the node before."""
        if self._joined is not None and capacity.is_like(self._joined.sample):
            return self._joined
        labels = {label: value for label, value in capacity.labels.items() if label not in self._loose}
        traits = _traits(labels, capacity)
        found = self._classes.get(traits)
        if found is None:
            found = self._classes[traits] = NodeClass(replace(capacity, labels=labels))
        self._joined = found
        return found

    def _bound(self, everybody: Iterable[Capacity]) -> None:
        """Take the label with the most values out of the classes while there are too many of them."""
        placeable = [capacity for capacity in everybody if capacity.problem is None]
        while len(self._classes) > self._most:
            values = Counter(label for label, _ in self._labels.carried if label not in self._loose)
            most = max(values.values(), default=0)
            if most <= 1:
                return  # nodes differ in something else
            self._loose.add(min(label for label, count in values.items() if count == most))
            self._classes.clear()
            self._class_of.clear()
            self._joined = self._levels = None
            for capacity in placeable:
                self._join(capacity)


def _gpus_of(found: tuple[NodeClass, FreeLevel]) -> int:
    _, level = found
    return level.gpus


def _traits(labels: Mapping[str, str], capacity: Capacity) -> Hashable:
    """What nodes of one class have alike, where these of their labels are part of classes."""
    return (
        tuple(sorted(labels.items())),
        capacity.runtimes,
        capacity.features,
        capacity.pool,
        capacity.levels,
        capacity.taints,
        capacity.gpu_sizes,
    )
