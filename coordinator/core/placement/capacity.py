"""Capacities of nodes, sorted into node classes, so that a search looks at each class and not at every node."""

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from muster.domain.fleet.node import Gpu, RuntimeOffer
from muster.domain.ids import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a node has to give, free or in all."""

    node: NodeId
    gpus: tuple[Gpu, ...] = ()
    """GPUs that can be used, by index."""
    cpu_millis: int = 0
    memory: int = 0
    runtimes: tuple[RuntimeOffer, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()
    """Fixed port numbers that are taken. Nodes are alike whatever these are: they are looked at node by node."""
    features: frozenset[str] = frozenset()
    """Words for what its agent can."""
    problem: str | None = None
    """Why nothing can be placed on it at all."""


Key = tuple[tuple[tuple[int, str], ...], NodeId]
"""Sorts nodes in natural order of their names."""


def key_of(node: NodeId) -> Key:
    """Where a node stands in natural order."""
    return (natural(node), node)


@lru_cache(maxsize=100_000)
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts node-2 before node-10."""
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name))


@dataclass(slots=True)
class NodeClass:
    """Nodes whose capacities differ in nothing that decides whether an execution fits."""

    sample: Capacity
    keys: list[Key]
    """The nodes in natural order."""


class Capacities:
    """Capacities by node, and the node classes of those on which something can be placed."""

    def __init__(self, capacities: Iterable[Capacity] = ()) -> None:
        self._by_node: dict[NodeId, Capacity] = {}
        self._likeness: dict[NodeId, Hashable] = {}
        self._classes: dict[Hashable, NodeClass] = {}
        self._holders: dict[int, set[NodeId]] = {}
        for capacity in capacities:
            self.put(capacity)

    def __len__(self) -> int:
        return len(self._by_node)

    def __contains__(self, node: object) -> bool:
        return node in self._by_node

    def __iter__(self) -> Iterator[Capacity]:
        return iter(self._by_node.values())

    def of(self, node: NodeId) -> Capacity:
        """The capacity of one node."""
        return self._by_node[node]

    def classes(self) -> Iterable[NodeClass]:
        """All node classes; not to be changed."""
        return self._classes.values()

    def class_of(self, node: NodeId) -> NodeClass | None:
        """The class of a node; None: nothing can be placed on it."""
        return self._classes.get(self._likeness.get(node))

    def holders(self, ports: Iterable[int]) -> set[NodeId]:
        """The nodes on which one of these port numbers is taken."""
        return {node for port in ports for node in self._holders.get(port, ())}

    def put(self, capacity: Capacity) -> None:
        """Add the capacity of a node, or replace it."""
        self.drop(capacity.node)
        self._by_node[capacity.node] = capacity
        for port in capacity.ports:
            self._holders.setdefault(port, set()).add(capacity.node)
        if capacity.problem is not None:
            return
        likeness = self._likeness[capacity.node] = _likeness(capacity)
        node_class = self._classes.get(likeness)
        if node_class is None:
            self._classes[likeness] = NodeClass(capacity, [key_of(capacity.node)])
        else:
            insort(node_class.keys, key_of(capacity.node))

    def drop(self, node: NodeId) -> None:
        """Forget a node."""
        capacity = self._by_node.pop(node, None)
        for port in capacity.ports if capacity is not None else ():
            self._holders[port].discard(node)
            if not self._holders[port]:
                del self._holders[port]
        likeness = self._likeness.pop(node, None)
        if likeness is None:
            return
        keys = self._classes[likeness].keys
        del keys[bisect_left(keys, key_of(node))]
        if not keys:
            del self._classes[likeness]


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


def _likeness(capacity: Capacity) -> Hashable:
    return (
        tuple(sorted(Counter(gpu.model for gpu in capacity.gpus).items())),
        capacity.cpu_millis,
        capacity.memory,
        capacity.runtimes,
        tuple(sorted(capacity.labels.items())),
        capacity.features,
    )
