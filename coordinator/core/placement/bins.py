"""Capacities of nodes in bins, so that a search looks at bins, and at a node only where its bin tells too little.

A *node class* is what stays as it is while nodes run. The nodes of a class lie in *bins*: by the free GPUs of each
model, and by powers of two of free CPUs and memory. However uneven the nodes are, classes and bins are few.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.classes.all_classes import NodeClasses
from coordinator.core.placement.classes.group import NodeGroup
from coordinator.core.placement.classes.leaf_rooms import KnownRooms
from coordinator.core.placement.classes.node_class import FreeLevel, NodeClass
from coordinator.core.placement.labels.domain import PoolLevels
from coordinator.core.placement.labels.label_index import LabelIndex
from coordinator.core.placement.portions.sharing_nodes import SharingNodes
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.toleration import TaintEffect

MOST_NODE_CLASSES = 256
"""Node classes at the most; where labels make more, the label with the most values is no longer part of classes."""

MOST_GROWN = 256
"""The newest growths of nodes that capacities remember."""


class Capacities:
    """Capacities by node, and the bins of those on which something can be placed."""

    def __init__(self, capacities: Iterable[Capacity] = (), most_classes: int = MOST_NODE_CLASSES) -> None:
        self._by_node: dict[NodeId, Capacity] = {}
        self.labels = LabelIndex()
        """The nodes by the labels that they carry."""
        self._classes = NodeClasses(self.labels, most_classes)
        self.sharing = SharingNodes()
        """The nodes of which GPUs are given in portions."""
        self.levels = PoolLevels()
        """The levels of each pool, and so the domains in which its nodes are."""
        self.rooms = KnownRooms()
        """How many executions fit into each domain, as far as somebody asked."""
        self._holders: dict[int, set[NodeId]] = {}
        self._pools: Counter[str] = Counter()
        """How many nodes each pool has."""
        self._avoided: set[NodeId] = set()
        """Nodes with a taint because of which jobs are rather placed elsewhere."""
        self._version = 0
        self._grown: deque[NodeId] = deque(maxlen=MOST_GROWN)
        """The node of each growth, the newest last."""
        for capacity in capacities:
            self.put(capacity)

    def __len__(self) -> int:
        return len(self._by_node)

    def __contains__(self, node: object) -> bool:
        return node in self._by_node

    def __iter__(self) -> Iterator[Capacity]:
        return iter(self._by_node.values())

    @property
    def version(self) -> int:
        """A number that grows whenever something may fit that did not fit before."""
        return self._version

    def grown_since(self, version: int) -> Sequence[NodeId] | None:
        """The nodes that have let the version grow from this one on; None: too many have."""
        growths = self._version - version
        if growths > len(self._grown):
            return None
        return tuple(dict.fromkeys(islice(reversed(self._grown), growths)))

    @property
    def loose(self) -> frozenset[str]:
        """Labels that are not part of classes."""
        return self._classes.loose

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that have nodes, by name."""
        return tuple(sorted(self._pools)) if len(self._pools) > 1 else tuple(self._pools)

    @property
    def has_avoided(self) -> bool:
        """Whether there are nodes on which jobs are rather not placed."""
        return bool(self._avoided)

    def of(self, node: NodeId) -> Capacity:
        """The capacity of one node."""
        return self._by_node[node]

    def classes(self) -> Iterable[NodeClass]:
        """All node classes on which something can be placed."""
        return self._classes

    def levels_with(self, gpus: int) -> Sequence[tuple[NodeClass, FreeLevel]]:
        """The levels of all classes that have so many free GPUs or more, those with the fewest first."""
        return self._classes.levels_with(gpus)

    def groups_of(self, node: NodeId) -> Sequence[NodeGroup]:
        """The level and the bin of a node; none: nothing can be placed on it."""
        return self._classes.groups_of(self._by_node[node])

    def sample_of(self, node: NodeId) -> Capacity | None:
        """What is like a node but for labels that are part of no class; None: nothing can be placed there."""
        return self._classes.sample_of(node)

    def holders(self, ports: Iterable[int]) -> Iterator[NodeId]:
        """The nodes that have given one of these fixed ports away."""
        return (node for port in ports for node in self._holders.get(port, ()))

    def put(self, capacity: Capacity) -> None:
        """Add a node, or replace the capacity of one that is there."""
        before = self._by_node.get(capacity.node)
        if before is None or capacity.exceeds(before):
            self._version += 1
            self._grown.append(capacity.node)
        self._by_node[capacity.node] = capacity
        if capacity.shared or (before is not None and before.shared):
            self.sharing.change(capacity.node, () if before is None else before.shared, capacity.shared)
        if capacity.ports if before is None else before.ports != capacity.ports:
            self._hold_ports(capacity.node, () if before is None else before.ports, capacity.ports)
        is_like = before is not None and capacity.is_like(before)
        if not is_like:
            self._note(before, capacity)
        if before is not None and capacity.node in self._classes:
            if is_like and capacity.problem is None:
                self._classes.move(before, capacity)
                return
            self._classes.leave(before)
        if capacity.problem is None:
            self._classes.join(capacity, self)

    def _note(self, before: Capacity | None, after: Capacity) -> None:
        """Hear of a node that is new, or has other traits than before."""
        self.labels.change(after.node, {} if before is None else before.labels, after.labels)
        self.levels.change(before, after)
        _count_pools(self._pools, None if before is None else before.pool, after.pool)
        _note_avoided(self._avoided, after)

    def drop(self, node: NodeId) -> None:
        """Forget a node."""
        capacity = self._by_node.pop(node, None)
        if capacity is None:
            return
        self._hold_ports(node, capacity.ports, ())
        self.sharing.change(node, capacity.shared, ())
        self.labels.change(node, capacity.labels, {})
        self.levels.change(capacity, None)
        _count_pools(self._pools, capacity.pool, None)
        self._avoided.discard(node)
        if node in self._classes:
            self._classes.leave(capacity)

    def _hold_ports(self, node: NodeId, before: Iterable[int], after: Iterable[int]) -> None:
        for port in before:
            self._holders[port].discard(node)
            if not self._holders[port]:
                del self._holders[port]
        for port in after:
            self._holders.setdefault(port, set()).add(node)


def mig_profiles(capacities: Capacities) -> frozenset[str]:
    """The profiles of the MIG devices that there are."""
    levels = (free for each in capacities.classes() for free, _ in each.levels)
    return frozenset(mig for free in levels for _, mig, _ in free if mig)


def _count_pools(pools: Counter[str], before: str | None, after: str | None) -> None:
    if after is not None:
        pools[after] += 1
    if before is not None:
        pools[before] -= 1
        if not pools[before]:
            del pools[before]


def _note_avoided(avoided: set[NodeId], capacity: Capacity) -> None:
    if capacity.taints and any(taint.effect is TaintEffect.PREFER_NO_SCHEDULE for taint in capacity.taints):
        avoided.add(capacity.node)
    else:
        avoided.discard(capacity.node)
