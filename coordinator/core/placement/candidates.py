"""Where executions of a part may fit: levels, groups and single nodes, each with bounds of how many fit on a node.

A *level* has the nodes of one class with the same free GPUs. Where GPUs alone decide how many fit, it is one group of
nodes; else each of its bins is one. A search begins with levels, and goes on to groups and to nodes only where the
bounds are too wide for the answer.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.capacity import Capacity, Key, key_of
from coordinator.core.placement.classes.group import NodeGroup
from coordinator.core.placement.classes.node_class import BinLevels, FreeLevel, NodeClass, spans_of
from coordinator.core.placement.devices import is_of_kind
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.labels.domain import Domain, Levels
from coordinator.core.placement.parts import Part
from coordinator.core.placement.shared_draft import SharedDraft, fresh_slots
from coordinator.core.placement.suitable import asked_labels, cost, unfit
from muster.domain.fleet.features import needed
from muster.domain.fleet.pool import NODE_TYPE_LABEL
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.placing.affinity import LabelOperator
from muster.domain.jobs.placing.portion import Portion


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
        return (self if self.pools == (pool,) else replace(self, pools=(pool,)) for pool in pools)

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
class AlikeNodes:
    """Nodes of a level or a bin, on each of which between `least` and `most` executions fit."""

    group: NodeGroup
    keys: Sequence[Key]
    """The nodes among which to look, in natural order."""
    size: int
    least: int
    most: int
    limit: int
    """Executions that fit on each as far as CPUs and memory go round."""

    @property
    def gpus(self) -> int:
        """Free GPUs of each."""
        return self.group.gpus

    @property
    def is_exact(self) -> bool:
        """Whether equally many fit on all of them."""
        return self.least == self.most


@dataclass(slots=True)
class SuitableLevel:
    """Nodes of one class with the same free GPUs, on each of which `most` executions fit at the most."""

    nodes: FreeLevel
    most: int
    least: int
    """Executions for which each has GPUs for sure."""


@dataclass(slots=True)
class Candidates:
    """All nodes on which executions of a part may fit, each once."""

    spec: JobSpec
    part: Part
    available: Available
    drafts: Mapping[NodeId, Draft]
    """The nodes that the gang uses already."""
    _out: set[NodeId] = field(init=False)
    """Nodes that are no candidates as nodes of their group."""
    _missing: Counter[int] = field(init=False)
    """How many nodes of a group are out."""
    _bounds: dict[BinLevels, tuple[int, int]] = field(init=False, default_factory=dict)
    """Executions for which there are CPUs and memory on every node of a bin, and on none more."""
    _is_by_node: bool = field(init=False)
    """Whether labels are asked for that are part of no class."""
    _named: Sequence[NodeId] = field(init=False)
    """Nodes that are looked at by themselves, as labels that are part of no class decide about them."""
    _features: frozenset[str] = field(init=False)
    """What a node's agent must know."""
    _suitable: dict[int, int | None] = field(init=False, default_factory=dict)
    """What nodes of a class cost; None: the part may not be placed there. Of those alone that were asked for."""

    def __post_init__(self) -> None:
        capacities = self.available.capacities
        self._features = needed(self.spec, self.part.role)
        self._out = {
            *self.drafts,
            *capacities.holders(self.part.ports),
            *self.available.closed,
            *self.spec.exclude_nodes,
        }
        if self.available.without is not None:
            self._out.add(self.available.without)
        loose = capacities.loose
        self._is_by_node = bool(loose) and not loose.isdisjoint(asked_labels(self.spec))
        found = dict.fromkeys(self._nodes_with_labels() if self._is_by_node else self._nodes_in_question())
        if (portion := self.part.role.resources.portion) is not None and not self._is_by_node:
            sharing = capacities.sharing.holding(portion)
            found |= dict.fromkeys(node for node in sharing if capacities.of(node).shares(portion))
        if self.part.role.resources.disk and not self._is_by_node:
            found |= dict.fromkeys(_short_of_disk(self.spec, self.part, capacities))
        looked_at = (capacities.of(node) for node in found if node not in self._out)
        self._named = [each.node for each in looked_at if self.available.has(each.pool) and self._is_near(each)]
        self._out.update(found)
        out = (node for node in self._out if node in capacities and self._is_near(capacities.of(node)))
        self._missing = Counter(id(group) for node in out for group in capacities.groups_of(node))

    @property
    def out(self) -> Collection[NodeId]:
        """Nodes that are no candidates as nodes of their group."""
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
        classes = () if self._is_by_node else self.available.capacities.classes()
        return sorted(costs.union(price for each in classes if (price := self._price(each)) is not None))

    def has_any(self, at: int | None = None) -> bool:
        """Whether one execution fits anywhere; `at`: on a node that costs so much."""
        if next(self.singles(at), None) is not None:
            return True
        groups = (nodes for level in self.levels(at) for nodes in self.groups(level))
        return any(nodes.least or any(self.slots(nodes, node) for _, node in self.nodes(nodes)) for nodes in groups)

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

    def levels(self, at: int | None = None) -> Iterator[SuitableLevel]:
        """All other nodes, those with the fewest free GPUs first; `at`: those alone that cost so much."""
        if self._is_by_node:
            return
        spec, need, portion = self.spec, self.part.role.resources, self.part.role.resources.portion
        most = self.part.count if spec.max_per_node is None else min(self.part.count, spec.max_per_node)
        if self.part.ports:
            most = min(most, 1)
        for node_class, level in self.available.capacities.levels_with(need.gpus):
            if portion is not None:
                least, limit = (min(most, each) for each in self._portions(node_class, level, portion))
            else:
                least = limit = min(most, level.matching(need) // need.gpus) if need.gpus else most
            if limit and not (spec.exclusive and not level.idle):
                price = self._price(node_class)
                if price is not None and (at is None or price == at):
                    yield SuitableLevel(level, limit, least)

    def _price(self, node_class: NodeClass) -> int | None:
        """What the nodes of a class cost; None: the part may not be placed there."""
        known = id(node_class)
        if known not in self._suitable:
            sample = node_class.sample
            fits = self.available.has(sample.pool) and unfit(self.spec, self.part.role, sample, self._features) is None
            self._suitable[known] = cost(self.spec, sample) if fits else None
        return self._suitable[known]

    def _portions(self, node_class: NodeClass, level: FreeLevel, portion: Portion) -> tuple[int, int]:
        """Executions that find portions of free GPUs on a node: at the least, and at the most."""
        need = self.part.role.resources
        models = {model for model, mig, _ in level.free if is_of_kind(model, mig or None, need)}
        sizes = [gib for model, gib in node_class.sample.gpu_sizes if model in models]
        return fresh_slots(level.matching(need), need, portion, sizes)

    def groups(self, level: SuitableLevel) -> Iterator[AlikeNodes]:
        """The nodes of a level: in one group if its GPUs decide how many fit on each, or else by bins."""
        limit = level.most
        if level.least == limit <= self._bound(level.nodes.floor)[0]:
            if (found := self._alike(level.nodes, limit, limit, limit)) is not None:
                yield found
            return
        for levels, nodes in level.nodes.bins.items():
            least, most = self._bound(levels)
            if most and (found := self._alike(nodes, min(least, level.least), min(most, limit), limit)) is not None:
                yield found

    def _alike(self, group: NodeGroup, least: int, most: int, limit: int) -> AlikeNodes | None:
        """The nodes of a group that are candidates as such; None: there is none."""
        domain, keys = self.available.domain, group.keys
        if domain is not None:
            keys = group.by_path(domain.levels, self.available.capacities.of).get(domain.path, [])
        size = len(keys) - self._missing[id(group)] if self._missing else len(keys)
        return AlikeNodes(group, keys, size, least, most, limit) if size else None

    def nodes(self, of: AlikeNodes) -> Iterator[Key]:
        """The nodes of a group in natural order."""
        return (key for key in of.keys if key[1] not in self._out) if self._out else iter(of.keys)

    def by_cpus(self, of: AlikeNodes) -> Iterator[tuple[int, Key]]:
        """The nodes of a group by free CPUs below zero, and then in natural order."""
        lines = of.group.by_cpus(self.available.capacities.of)
        if self.available.domain is not None:
            near = set(of.keys)
            lines = [entry for entry in lines if entry[1] in near]
        return (entry for entry in lines if entry[1][1] not in self._out)

    def slots(self, of: AlikeNodes, node: NodeId) -> int:
        """Executions that fit on one node of a group."""
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

    def _bound(self, levels: BinLevels) -> tuple[int, int]:
        """Executions for which there are CPUs and memory on every node of a bin, and on none more."""
        bounds = self._bounds.get(levels)
        if bounds is None:
            cpus, memory = spans_of(levels)
            bounds = self._bounds[levels] = self._slots(cpus.least, memory.least), self._slots(cpus.most, memory.most)
        return bounds

    def _slots(self, cpu_millis: int, memory: int) -> int:
        """Executions for which there are CPUs and memory."""
        return _slots(self.part, cpu_millis, memory)


def _slots(part: Part, cpu_millis: int, memory: int) -> int:
    need, slots = part.role.resources, part.count
    if need.cpu_millis:
        slots = min(slots, cpu_millis // need.cpu_millis)
    if need.memory:
        slots = min(slots, memory // need.memory)
    return max(0, slots)


def _short_of_disk(spec: JobSpec, part: Part, capacities: Iterable[Capacity]) -> Iterator[NodeId]:
    """Nodes whose disk holds fewer executions than they have room for otherwise; one look at each, and nothing more."""
    need = part.role.resources
    most = part.count if spec.max_per_node is None else min(part.count, spec.max_per_node)
    for capacity in capacities:
        by_disk = max(0, capacity.disk) // (need.disk or 1)
        if by_disk < most and by_disk < _slots(part, capacity.cpu_millis, capacity.memory):
            by_gpus = len(capacity.gpus) // need.gpus if need.gpus and need.portion is None else most
            if by_disk < by_gpus:
                yield capacity.node
