"""Where executions of a part may fit: levels, bins and single nodes, each with bounds of how many fit on a node.

A *level* has the nodes of one class with the same free GPUs. It is made of bins, and these of nodes. A search begins
with levels, and goes on to bins and to nodes only where the bounds are too wide for the answer.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from coordinator.core.placement.bins import Bin, BinLevels, Capacities, FreeGpus, FreeLevel, NodeClass
from coordinator.core.placement.capacity import Capacity, Key, key_of
from coordinator.core.placement.devices import is_of_kind
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.labels.domain import Domain, Levels
from coordinator.core.placement.parts import Part
from coordinator.core.placement.shared_draft import SharedDraft, fresh_slots
from coordinator.core.placement.suitable import asked_labels, cost, unfit
from muster.domain.fleet.pool import NODE_TYPE_LABEL
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec, Resources
from muster.domain.jobs.placing.affinity import LabelOperator


@dataclass(frozen=True, slots=True, kw_only=True)
class Available:
    """The capacities that a search may use."""

    capacities: Capacities
    pools: tuple[str, ...] | None = None
    """The pools in which to look, one after the other; None: all of them, by name."""
    without: NodeId | None = None
    """A node that is left out."""
    closed: frozenset[NodeId] = frozenset()
    """Nodes on which this job is not to be placed now, whatever they have."""
    domain: Domain | None = None
    """The nodes close to each other in which alone to look; None: wherever they are."""
    levels: Levels = ()
    """The levels by which executions are kept together there, the coarsest first."""
    node: NodeId | None = None
    """The node that was found to take the whole gang; None: none was looked for, or found."""
    price: int | None = None
    """What nodes cost among which alone to look; None: whatever they cost."""

    def __len__(self) -> int:
        out = self.closed if self.without is None else self.closed | {self.without}
        return len(self.capacities) - sum(node in self.capacities for node in out)

    def by_pool(self) -> "Iterator[Available]":
        """What each pool has of it."""
        pools = self.capacities.pools if self.pools is None else self.pools
        return (replace(self, pools=(pool,)) for pool in pools)

    def has(self, pool: str) -> bool:
        """Whether the nodes of a pool are among them."""
        return self.pools is None or pool in self.pools

    def offers(self, capacity: Capacity) -> bool:
        """Whether a node is among them."""
        is_out = capacity.node == self.without or capacity.node in self.closed
        near = self.domain is None or self.domain.has(capacity.labels)
        return not is_out and near and self.has(capacity.pool)


@dataclass(slots=True)
class SingleNode:
    """One node."""

    key: Key
    slots: int
    """Executions that fit on it."""
    gpus: int
    """Free GPUs."""
    cpu_millis: int
    taken: int = 0
    """Executions of the gang that it has already."""
    shared_slots: int = 0
    """Executions that find portions of GPUs that are shared already."""
    fullest: int = 0
    """What is left, in thousandths, of the fullest shared GPU that holds a portion."""


@dataclass(slots=True)
class BinOfNodes:
    """Nodes of one bin, on each of which between `least` and `most` executions fit."""

    bin: Bin
    keys: Sequence[Key]
    """The nodes among which to look, in natural order."""
    gpus: int
    """Free GPUs of each."""
    size: int
    least: int
    most: int
    limit: int
    """Executions that fit on each as far as CPUs and memory go round."""

    @property
    def is_exact(self) -> bool:
        """Whether equally many fit on all of them."""
        return self.least == self.most


@dataclass(slots=True)
class LevelOfBins:
    """Nodes of one class with the same free GPUs, on each of which `most` executions fit at the most."""

    node_class: NodeClass
    free: FreeLevel
    gpus: int
    """Free GPUs of each."""
    most: int
    least: int
    """Executions for which each has GPUs for sure."""

    @property
    def bins(self) -> Mapping[BinLevels, Bin]:
        """The bins of the level."""
        return self.node_class.bins[self.free]


@dataclass(slots=True)
class Candidates:
    """All nodes on which executions of a part may fit, each once."""

    spec: JobSpec
    part: Part
    available: Available
    drafts: Mapping[NodeId, Draft]
    """The nodes that the gang uses already."""
    _out: set[NodeId] = field(init=False)
    """Nodes that are no candidates as nodes of their bin."""
    _missing: Counter[int] = field(init=False)
    """How many nodes of a bin are out."""
    _bounds: dict[BinLevels, tuple[int, int]] = field(init=False, default_factory=dict)
    """Executions for which there are CPUs and memory on every node of a bin, and on none more."""

    _named: Sequence[NodeId] = field(init=False)
    """Nodes that are looked at by themselves, as labels that are part of no class decide about them."""
    _suitable: Sequence[tuple[NodeClass, int]] | None = field(init=False, default=None)
    """The classes on which the part may be placed, and what their nodes cost; made when it is first asked for."""

    def __post_init__(self) -> None:
        capacities = self.available.capacities
        self._out = {*self.drafts, *capacities.holders(self.part.ports), *self.available.closed}
        self._out.update(self.spec.exclude_nodes)
        if self.available.without is not None:
            self._out.add(self.available.without)
        found = dict.fromkeys(self._nodes_with_labels() if self._is_by_node else self._nodes_in_question())
        if (portion := self.part.role.resources.portion) is not None and not self._is_by_node:
            sharing = capacities.sharing.holding(portion)
            found |= dict.fromkeys(node for node in sharing if capacities.of(node).shares(portion))
        looked_at = (capacities.of(node) for node in found if node not in self._out)
        self._named = [each.node for each in looked_at if self.available.has(each.pool) and self._is_near(each)]
        self._out.update(found)
        out = (node for node in self._out if node in capacities and self._is_near(capacities.of(node)))
        self._missing = Counter(id(capacities.bin_of(node)) for node in out)

    @property
    def out(self) -> Collection[NodeId]:
        """Nodes that are no candidates as nodes of their bin."""
        return self._out

    def costs(self) -> Sequence[int | None]:
        """The costs of the nodes, the least first; `None` alone where all nodes cost the same."""
        if not self.available.capacities.has_avoided and not self.spec.affinity.preferred:
            return (None,)
        if self.available.price is not None:
            return (self.available.price,)
        capacities = (self.available.capacities.of(node) for node in self._named)
        drafted = (draft.capacity for draft in self.drafts.values())
        costs = {cost(self.spec, capacity) for capacity in (*capacities, *drafted)}
        return sorted(costs.union(price for _, price in self._classes()))

    def has_any(self, at: int | None = None) -> bool:
        """Whether one execution fits anywhere; `at`: on a node that costs so much."""
        if next(self.singles(at), None) is not None:
            return True
        bins = (nodes for level in self.levels(at) for nodes in self.bins(level))
        return any(nodes.least or any(self.slots(nodes, node) for _, node in self.nodes(nodes)) for nodes in bins)

    def singles(self, at: int | None = None) -> Iterator[SingleNode]:
        """The nodes that are looked at by themselves from the start; `at`: those alone that cost so much."""
        for node, draft in self.drafts.items():
            if (
                self._is_near(draft.capacity)
                and self._costs(draft.capacity, at)
                and (slots := draft.slots(self.spec, self.part))
            ):
                yield self._single(node, slots, draft)
        for node in self._named:
            capacity = self.available.capacities.of(node)
            if self._costs(capacity, at):
                draft = Draft(capacity)
                if slots := draft.slots(self.spec, self.part):
                    yield self._single(node, slots, draft)

    def _single(self, node: NodeId, slots: int, draft: Draft) -> SingleNode:
        need = self.part.role.resources
        of_shared = fullest = 0
        if draft.shared and (portion := need.portion) is not None:
            shared = SharedDraft((), draft.shared)
            of_shared, fullest = shared.slots(need, portion, slots), shared.fullest(need, portion) or 0
        return SingleNode(key_of(node), slots, len(draft.gpus), draft.cpu_millis, draft.taken, of_shared, fullest)

    def levels(self, at: int | None = None) -> Iterator[LevelOfBins]:
        """All other nodes; `at`: those alone that cost so much."""
        spec, need = self.spec, self.part.role.resources
        most = self.part.count if spec.max_per_node is None else min(self.part.count, spec.max_per_node)
        if self.part.ports:
            most = min(most, 1)
        for node_class, price in self._classes():
            if at is None or price == at:
                for free_level in node_class.bins:
                    free, idle = free_level
                    if spec.exclusive and not idle:
                        continue
                    if need.portion is None:
                        least = limit = min(most, _matching(free, need) // need.gpus) if need.gpus else most
                    else:
                        least, limit = (min(most, each) for each in self._portions(node_class, free))
                    if limit:
                        yield LevelOfBins(node_class, free_level, sum(count for *_, count in free), limit, least)

    def _classes(self) -> Sequence[tuple[NodeClass, int]]:
        """The classes on which the part may be placed, and what their nodes cost."""
        if self._suitable is None:
            spec, role = self.spec, self.part.role
            found = [] if self._is_by_node else self.available.capacities.classes()
            self._suitable = [
                (each, cost(spec, each.sample))
                for each in found
                if self.available.has(each.sample.pool) and unfit(spec, role, each.sample) is None
            ]
        return self._suitable

    def _portions(self, node_class: NodeClass, free: FreeGpus) -> tuple[int, int]:
        """Executions that find portions of free GPUs on a node: at the least, and at the most."""
        need = self.part.role.resources
        assert need.portion is not None
        models = {model for model, mig, _ in free if is_of_kind(model, mig or None, need)}
        sizes = [gib for model, gib in node_class.sample.gpu_sizes if model in models]
        return fresh_slots(_matching(free, need), need, need.portion, sizes)

    def bins(self, level: LevelOfBins) -> Iterator[BinOfNodes]:
        """The bins of a level."""
        limit, domain, capacities = level.most, self.available.domain, self.available.capacities
        for levels, nodes in level.bins.items():
            least, most = self._bounds.get(levels) or self._bound(levels, nodes)
            if most:
                keys = nodes.keys if domain is None else nodes.by_path(domain.levels, capacities).get(domain.path, ())
                size = len(keys) - self._missing[id(nodes)] if self._missing else len(keys)
                if size:
                    least = min(least, level.least)
                    yield BinOfNodes(nodes, keys, level.gpus, size, least, min(most, limit), limit)

    def nodes(self, of: BinOfNodes) -> Iterator[Key]:
        """The nodes of a bin in natural order."""
        return (key for key in of.keys if key[1] not in self._out) if self._out else iter(of.keys)

    def by_cpus(self, of: BinOfNodes) -> Iterator[tuple[int, Key]]:
        """The nodes of a bin by free CPUs below zero, and then in natural order."""
        lines = of.bin.by_cpus(self.available.capacities)
        if self.available.domain is not None:
            near = set(of.keys)
            lines = [entry for entry in lines if entry[1] in near]
        return (entry for entry in lines if entry[1][1] not in self._out)

    def slots(self, of: BinOfNodes, node: NodeId) -> int:
        """Executions that fit on one node of a bin."""
        if of.is_exact:
            return of.most
        capacity = self.available.capacities.of(node)
        if self.part.role.resources.portion is not None:
            return min(of.limit, Draft(capacity).slots(self.spec, self.part))
        return min(of.limit, self._slots(capacity.cpu_millis, capacity.memory))

    def _is_near(self, capacity: Capacity) -> bool:
        """Whether a node is in the domain in which to look."""
        return self.available.domain is None or self.available.domain.has(capacity.labels)

    def _costs(self, capacity: Capacity, at: int | None) -> bool:
        """Whether a node costs so much; None: whatever it costs."""
        return at is None or cost(self.spec, capacity) == at

    @property
    def _is_by_node(self) -> bool:
        """Whether labels are asked for that are part of no class."""
        loose = self.available.capacities.loose
        return bool(loose) and not loose.isdisjoint(asked_labels(self.spec))

    def _nodes_with_labels(self) -> Iterable[NodeId]:
        """Nodes that carry the labels which are part of no class."""
        capacities = self.available.capacities
        labels = {label: value for label, value in self.spec.node_labels.items() if label in capacities.loose}
        if labels:
            return capacities.labels.with_all(labels)
        return chain.from_iterable(capacities.labels.with_all({NODE_TYPE_LABEL: each}) for each in self.spec.node_types)

    def _nodes_in_question(self) -> Iterator[NodeId]:
        """Nodes of which an affinity may hold, or not hold, other than of their class: because of such labels."""
        capacities = self.available.capacities
        if not capacities.loose:
            return
        for expression in self.spec.affinity.expressions:
            if expression.key in capacities.loose:
                by_value = expression.operator in {LabelOperator.IN, LabelOperator.NOT_IN}
                yield from capacities.labels.with_any(expression.key, expression.values if by_value else None)

    def _bound(self, levels: BinLevels, nodes: Bin) -> tuple[int, int]:
        least, most = nodes.cpu_millis.least, nodes.cpu_millis.most
        bounds = self._slots(least, nodes.memory.least), self._slots(most, nodes.memory.most)
        self._bounds[levels] = bounds
        return bounds

    def _slots(self, cpu_millis: int, memory: int) -> int:
        """Executions for which there are CPUs and memory."""
        need = self.part.role.resources
        slots = self.part.count
        if need.cpu_millis:
            slots = min(slots, cpu_millis // need.cpu_millis)
        if need.memory:
            slots = min(slots, memory // need.memory)
        return max(0, slots)


def _matching(free: FreeGpus, need: Resources) -> int:
    """How many GPUs are of the kind that is asked for."""
    return sum(count for model, mig, count in free if is_of_kind(model, mig or None, need))
