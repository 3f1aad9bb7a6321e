"""Where executions of a part fit: bins, with bounds of how many fit on each node, and single nodes.

A node of a bin is looked at only where the bounds of its bin are too wide for the answer.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from coordinator.core.placement.bins import Bin, Capacities, FreeGpus
from coordinator.core.placement.capacity import Key, key_of
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.parts import Part
from coordinator.core.placement.suitable import unfit
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec, Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Available:
    """The capacities that a search may use."""

    capacities: Capacities
    without: NodeId | None = None
    """A node that is left out."""

    def __len__(self) -> int:
        return len(self.capacities) - (self.without in self.capacities)


@dataclass(frozen=True, slots=True)
class SingleNode:
    """A node that was looked at by itself."""

    node: NodeId
    slots: int
    """Executions that fit on it."""
    gpus: int
    """Free GPUs."""
    cpu_millis: int
    taken: int = 0
    """Executions of the gang that it has already."""
    size = 1

    @property
    def least(self) -> int:
        """The fewest executions that fit."""
        return self.slots

    @property
    def most(self) -> int:
        """The most executions that fit."""
        return self.slots

    def in_order(self) -> Iterator[Key]:
        """The node alone."""
        return iter((key_of(self.node),))

    def by_cpus(self) -> Iterator[tuple[int, Key]]:
        """The node alone, with its free CPUs below zero."""
        return iter(((-self.cpu_millis, key_of(self.node)),))

    def look_at(self, node: NodeId) -> "SingleNode":  # noqa: ARG002 - there is no other
        """The node itself."""
        return self


@dataclass(slots=True)
class BinOfNodes:
    """Nodes of one bin, on each of which between `least` and `most` executions fit."""

    bin: Bin
    size: int
    """How many they are."""
    out: Collection[NodeId]
    """Nodes of the bin that are not among them."""
    least: int
    most: int
    limit: int
    """Executions that fit on each as far as CPUs and memory go round."""
    need: Resources
    capacities: Capacities
    taken = 0

    @property
    def gpus(self) -> int:
        """Free GPUs of each."""
        return self.bin.gpus

    def in_order(self) -> Iterator[Key]:
        """The nodes in natural order."""
        return (key for key in self.bin.keys if key[1] not in self.out)

    def by_cpus(self) -> Iterator[tuple[int, Key]]:
        """The nodes by free CPUs below zero, and then in natural order."""
        return (entry for entry in self.bin.by_cpus(self.capacities) if entry[1][1] not in self.out)

    def look_at(self, node: NodeId) -> SingleNode:
        """One of the nodes by itself."""
        capacity = self.capacities.of(node)
        slots = self.least
        if self.least != self.most:
            slots = _slots(self.need, self.limit, capacity.cpu_millis, capacity.memory)
        return SingleNode(node, slots, self.bin.gpus, capacity.cpu_millis)


Candidate = SingleNode | BinOfNodes


def candidates(spec: JobSpec, part: Part, available: Available, drafts: Mapping[NodeId, Draft]) -> Iterator[Candidate]:
    """Where executions of a part may fit, each node once; `drafts` are the nodes that the gang uses already."""
    for node, draft in drafts.items():
        if slots := draft.slots(spec, part):
            yield SingleNode(node, slots, len(draft.gpus), draft.cpu_millis, draft.taken)
    out = {*drafts, *available.capacities.holders(part.ports)}
    if available.without is not None:
        out.add(available.without)
    loose = {label: value for label, value in spec.node_labels.items() if label in available.capacities.loose}
    yield from _labelled(spec, part, available, loose, out) if loose else _in_bins(spec, part, available, out)


def _labelled(
    spec: JobSpec, part: Part, available: Available, labels: Mapping[str, str], out: Collection[NodeId]
) -> Iterator[Candidate]:
    """Nodes that carry labels which are part of no class, each by itself."""
    for node in available.capacities.labelled(labels):
        if node not in out:
            draft = Draft(available.capacities.of(node))
            if slots := draft.slots(spec, part):
                yield SingleNode(node, slots, len(draft.gpus), draft.cpu_millis)


def _in_bins(spec: JobSpec, part: Part, available: Available, out: Collection[NodeId]) -> Iterator[Candidate]:
    capacities, need = available.capacities, part.role.resources
    missing = Counter(id(capacities.bin_of(node)) for node in out if node in capacities)
    most = part.count if spec.max_per_node is None else min(part.count, spec.max_per_node)
    if part.ports:
        most = min(most, 1)
    for node_class in capacities.classes():
        if unfit(spec, part.role, node_class.sample) is not None:
            continue
        for free, bins in node_class.bins.items():
            limit = min(most, _matching(free, need.gpu_model) // need.gpus) if need.gpus else most
            if not limit:
                continue
            for each in bins.values():
                fullest = _slots(need, limit, each.cpu_millis.most, each.memory.most)
                size = len(each.keys) - missing[id(each)]
                if fullest and size:
                    emptiest = _slots(need, limit, each.cpu_millis.least, each.memory.least)
                    yield BinOfNodes(each, size, out, emptiest, fullest, limit, need, capacities)


def _slots(need: Resources, most: int, cpu_millis: int, memory: int) -> int:
    """Executions for which there are CPUs and memory, at the most so many."""
    if need.cpu_millis:
        most = min(most, cpu_millis // need.cpu_millis)
    if need.memory:
        most = min(most, memory // need.memory)
    return max(0, most)


def _matching(free: FreeGpus, model: str | None) -> int:
    """How many GPUs are of a model."""
    if model is None:
        return sum(count for _, count in free)
    wanted = model.lower()
    return sum(count for name, count in free if wanted in name.lower())
