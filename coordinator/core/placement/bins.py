"""Capacities of nodes in bins, so that a search looks at bins, and at a node only where its bin tells too little.

A *node class* is what stays as it is while nodes run. The nodes of a class lie in *bins*: by the free GPUs of each
model, and by powers of two of free CPUs and memory. However uneven the nodes are, classes and bins are few.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from coordinator.core.placement.capacity import Capacity, Key, key_of
from coordinator.core.placement.labels.domain import Levels, Path, PoolLevels, path_of
from coordinator.core.placement.labels.label_index import LabelIndex
from coordinator.core.placement.portions.sharing_nodes import SharingNodes
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.toleration import TaintEffect

MOST_NODE_CLASSES = 256
"""Node classes at the most; where labels make more, the label with the most values is no longer part of classes."""

FreeGpus = tuple[tuple[str, str, int], ...]
"""Free GPUs by model and MIG profile; an empty one stands for whole GPUs."""
FreeLevel = tuple[FreeGpus, bool]
"""Free GPUs by model, and whether nothing is held on the node."""
BinLevels = tuple[int, int]
"""Powers of two of free CPUs and of free GiB of memory."""


@dataclass(frozen=True, slots=True)
class Span:
    """Amounts between two bounds, both included."""

    least: int
    most: int


@dataclass(slots=True)
class Bin:
    """Nodes of one class with the same free GPUs and about the same free CPUs and memory."""

    gpus: int
    """Free GPUs of each node."""
    cpu_millis: Span
    memory: Span
    keys: list[Key] = field(default_factory=list)
    """The nodes in natural order."""
    _by_cpus: list[tuple[int, Key]] | None = None
    """The nodes by free CPUs, the most first; made when it is first asked for."""
    _by_path: dict[Levels, dict[Path, list[Key]]] = field(default_factory=dict)
    """The nodes by their path at some levels, in natural order; made for the levels that are asked for."""

    def add(self, capacity: Capacity) -> None:
        """Have a node among them."""
        insort(self.keys, key_of(capacity.node))
        for levels, groups in self._by_path.items():
            insort(groups.setdefault(path_of(levels, capacity.labels), []), key_of(capacity.node))
        if self._by_cpus is not None:
            insort(self._by_cpus, _by_cpus(capacity))

    def remove(self, capacity: Capacity) -> None:
        """Have a node among them no longer."""
        del self.keys[bisect_left(self.keys, key_of(capacity.node))]
        for levels, groups in self._by_path.items():
            path = path_of(levels, capacity.labels)
            del groups[path][bisect_left(groups[path], key_of(capacity.node))]
            if not groups[path]:
                del groups[path]
        if self._by_cpus is not None:
            del self._by_cpus[bisect_left(self._by_cpus, _by_cpus(capacity))]

    def change(self, before: Capacity, after: Capacity) -> None:
        """Hear that a node has other free CPUs than before, and stays among them."""
        if self._by_cpus is not None and before.cpu_millis != after.cpu_millis:
            del self._by_cpus[bisect_left(self._by_cpus, _by_cpus(before))]
            insort(self._by_cpus, _by_cpus(after))

    def by_cpus(self, capacities: "Capacities") -> list[tuple[int, Key]]:
        """The nodes by free CPUs below zero, and then in natural order; not to be changed."""
        if self._by_cpus is None:
            self._by_cpus = sorted(_by_cpus(capacities.of(node)) for _, node in self.keys)
        return self._by_cpus

    def by_path(self, levels: Levels, capacities: "Capacities") -> Mapping[Path, list[Key]]:
        """The nodes by their path at these levels, in natural order; not to be changed."""
        if levels not in self._by_path:
            groups = self._by_path[levels] = dict[Path, list[Key]]()
            for key in self.keys:
                groups.setdefault(path_of(levels, capacities.of(key[1]).labels), []).append(key)
        return self._by_path[levels]


@dataclass(slots=True)
class NodeClass:
    """Nodes that have the same traits, by free GPUs and then by the levels of CPUs and memory."""

    sample: Capacity
    """One of them; it has those labels alone that are part of classes."""
    bins: dict[FreeLevel, dict[BinLevels, Bin]] = field(default_factory=dict)
    _sizes: dict[FreeLevel, dict[Levels, dict[Path, int]]] = field(default_factory=dict)
    """How many nodes of a free level have a path at some levels; made for what is asked for."""

    def bin_of(self, capacity: Capacity) -> Bin:
        """The bin of a node of this class."""
        return self.bins[_free_level(capacity)][_levels(capacity)]

    def enter(self, capacity: Capacity) -> None:
        """Have a node in its bin."""
        free, levels = _free_level(capacity), _levels(capacity)
        bins = self.bins.setdefault(free, {})
        found = bins.get(levels)
        if found is None:
            cpus, memory = levels
            found = bins[levels] = Bin(len(capacity.gpus), _span(cpus, 1000), _span(memory, 1 << 30))
        found.add(capacity)
        self._count(free, capacity, 1)

    def leave(self, capacity: Capacity) -> None:
        """Have a node in no bin any more."""
        free, levels = _free_level(capacity), _levels(capacity)
        bins = self.bins[free]
        bins[levels].remove(capacity)
        self._count(free, capacity, -1)
        if not bins[levels].keys:
            del bins[levels]
            if not bins:
                del self.bins[free]
                self._sizes.pop(free, None)

    def sizes(self, free: FreeLevel, levels: Levels, capacities: "Capacities") -> Mapping[Path, int]:
        """How many nodes of a free level have each path at these levels; not to be changed."""
        known = self._sizes.setdefault(free, {})
        if levels not in known:
            sizes = known[levels] = dict[Path, int]()
            for nodes in self.bins[free].values():
                for path, keys in nodes.by_path(levels, capacities).items():
                    sizes[path] = sizes.get(path, 0) + len(keys)
        return known[levels]

    def _count(self, free: FreeLevel, capacity: Capacity, change: int) -> None:
        for levels, sizes in self._sizes.get(free, {}).items():
            path = path_of(levels, capacity.labels)
            sizes[path] = sizes.get(path, 0) + change
            if not sizes[path]:
                del sizes[path]

    def move(self, before: Capacity, after: Capacity) -> None:
        """Have a node in the bin of what it has now."""
        if _levels(before) == _levels(after) and _free_level(before) == _free_level(after):
            self.bin_of(after).change(before, after)
            return
        self.leave(before)
        self.enter(after)


class Capacities:
    """Capacities by node, and the bins of those on which something can be placed."""

    def __init__(self, capacities: Iterable[Capacity] = (), most_classes: int = MOST_NODE_CLASSES) -> None:
        self._most_classes = most_classes
        self._by_node: dict[NodeId, Capacity] = {}
        self._classes: dict[Hashable, NodeClass] = {}
        self._class_of: dict[NodeId, NodeClass] = {}
        self._loose: set[str] = set()
        """Labels that have too many values to be part of classes; they are looked at node by node."""
        self.labels = LabelIndex()
        """The nodes by the labels that they carry."""
        self.sharing = SharingNodes()
        """The nodes of which GPUs are given in portions."""
        self.levels = PoolLevels()
        """The levels of each pool, and so the domains in which its nodes are."""
        self._holders: dict[int, set[NodeId]] = {}
        self._pools: Counter[str] = Counter()
        """How many nodes each pool has."""
        self._avoided: set[NodeId] = set()
        """Nodes with a taint because of which jobs are rather placed elsewhere."""
        self._version = 0
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

    @property
    def loose(self) -> frozenset[str]:
        """Labels that are not part of classes."""
        return frozenset(self._loose)

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
        return self._classes.values()

    def bin_of(self, node: NodeId) -> Bin | None:
        """The bin of a node; None: nothing can be placed on it."""
        node_class = self._class_of.get(node)
        return None if node_class is None else node_class.bin_of(self._by_node[node])

    def sample_of(self, node: NodeId) -> Capacity | None:
        """What is like a node but for labels that are part of no class; None: nothing can be placed there."""
        node_class = self._class_of.get(node)
        return None if node_class is None else node_class.sample

    def holders(self, ports: Iterable[int]) -> Iterator[NodeId]:
        """The nodes that have given one of these fixed ports away."""
        return (node for port in ports for node in self._holders.get(port, ()))

    def put(self, capacity: Capacity) -> None:
        """Add a node, or replace the capacity of one that is there."""
        before = self._by_node.get(capacity.node)
        if before is None or capacity.exceeds(before):
            self._version += 1
        self._by_node[capacity.node] = capacity
        if capacity.shared or (before is not None and before.shared):
            self.sharing.change(capacity.node, () if before is None else before.shared, capacity.shared)
        if capacity.ports if before is None else before.ports != capacity.ports:
            self._hold_ports(capacity.node, () if before is None else before.ports, capacity.ports)
        if before is None or not capacity.is_like(before):
            self._note(before, capacity)
        node_class = self._class_of.get(capacity.node)
        if node_class is not None and before is not None:
            if capacity.problem is None and capacity.is_like(before):
                node_class.move(before, capacity)
                return
            self._leave(before)
        if capacity.problem is None:
            classes = len(self._classes)
            self._join(capacity)
            if len(self._classes) > max(classes, self._most_classes):
                self._bound_classes()

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
        if node in self._class_of:
            self._leave(capacity)

    def _join(self, capacity: Capacity) -> None:
        labels = {label: value for label, value in capacity.labels.items() if label not in self._loose}
        traits = _traits(labels, capacity)
        node_class = self._classes.get(traits)
        if node_class is None:
            node_class = self._classes[traits] = NodeClass(replace(capacity, labels=labels))
        self._class_of[capacity.node] = node_class
        node_class.enter(capacity)

    def _leave(self, capacity: Capacity) -> None:
        node_class = self._class_of.pop(capacity.node)
        node_class.leave(capacity)
        if not node_class.bins:
            del self._classes[_traits(node_class.sample.labels, capacity)]

    def _bound_classes(self) -> None:
        """Take the label with the most values out of the classes while there are too many of them."""
        while len(self._classes) > self._most_classes:
            values = Counter(label for label, _ in self.labels.carried if label not in self._loose)
            most = max(values.values(), default=0)
            if most <= 1:
                return  # nodes differ in something else
            self._loose.add(min(label for label, count in values.items() if count == most))
            self._classes.clear()
            self._class_of.clear()
            for capacity in self._by_node.values():
                if capacity.problem is None:
                    self._join(capacity)

    def _hold_ports(self, node: NodeId, before: Iterable[int], after: Iterable[int]) -> None:
        for port in before:
            self._holders[port].discard(node)
            if not self._holders[port]:
                del self._holders[port]
        for port in after:
            self._holders.setdefault(port, set()).add(node)


def mig_profiles(capacities: Capacities) -> frozenset[str]:
    """The profiles of the MIG devices that there are."""
    levels = (free for each in capacities.classes() for free, _ in each.bins)
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


def _free_gpus(capacity: Capacity) -> FreeGpus:
    if not capacity.gpus:
        return ()
    first = capacity.gpus[0]
    if all([gpu.model == first.model and gpu.mig == first.mig for gpu in capacity.gpus]):  # noqa: C419 - a list is faster
        return ((first.model, first.mig or "", len(capacity.gpus)),)
    kinds = Counter((gpu.model, gpu.mig or "") for gpu in capacity.gpus)
    return tuple((model, mig, count) for (model, mig), count in sorted(kinds.items()))


def _free_level(capacity: Capacity) -> FreeLevel:
    return (_free_gpus(capacity), capacity.idle)


def _levels(capacity: Capacity) -> BinLevels:
    return (max(0, capacity.cpu_millis // 1000).bit_length(), max(0, capacity.memory >> 30).bit_length())


def _span(level: int, unit: int) -> Span:
    """Amounts of a level: below one unit for level 0, then from one power of two to the next."""
    return Span((1 << level >> 1) * unit, (1 << level) * unit - 1)


def _by_cpus(capacity: Capacity) -> tuple[int, Key]:
    return (-capacity.cpu_millis, key_of(capacity.node))
