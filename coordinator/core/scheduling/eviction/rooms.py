"""The nodes on which a job may find seats once others have gone, and a search on these few alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement import placement, search
from coordinator.core.placement.bins import Capacities, mig_profiles
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.devices import matching
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.node_capacity import free_capacity
from coordinator.core.placement.parts import part_of
from coordinator.core.placement.placement import Placement
from coordinator.core.placement.suitable import asked_labels, unfit
from coordinator.core.records import Execution, Job
from coordinator.core.scheduling.eviction.gangs import RunningGang
from coordinator.core.scheduling.windows import closed_nodes
from muster.domain.fleet.quota import BYTES_PER_MIB, MILLIS_PER_GPU, NO_AMOUNTS, Amounts
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.placing.mig import thousandths
from muster.domain.jobs.placing.portion import Portion


class _Base(NamedTuple):
    """What a node has for executions of one part before anybody is evicted."""

    most: int
    """Executions that may fit, however much others free."""
    gpus: int
    shared: int
    """GPUs of which portions are given, each of which may become whole."""
    cpu_millis: int
    memory: int


_NOTHING = _Base(0, 0, 0, 0, 0)


class EvictionRooms:
    """What one job may have in a pool beside what is claimed, and beside what is kept for the head if it is another."""

    def __init__(self, cluster: Cluster, job: Job, pool: str, now: datetime, *, is_head: bool) -> None:
        self._cluster = cluster
        self._spec = job.spec
        self._pool = pool
        self._is_head = is_head
        self._closed = closed_nodes(cluster, job.spec, now)
        self._avoid = cluster.newest_attempt(job.id).avoid
        self._parts = [part_of(job.spec, place) for place in range(len(job.spec.roles))]
        self._part = max(self._parts, key=lambda part: (part.role.resources.gpus, part.role.resources.cpu_millis))
        self._bases: dict[NodeId, tuple[int, _Base]] = {}
        """How many executions fit on a node now, and what it has."""
        self._fits: dict[tuple[AttemptId, ...], Placement | None] = {}
        self._labels = asked_labels(job.spec) | {expression.key for expression in job.spec.affinity.expressions}
        self._suitable: dict[int, bool] = {}
        """Whether nodes of a class are, by what stands for the class."""

    @cached_property
    def missing(self) -> int:
        """How many executions of the role that needs most find no seat, though all that is leaving has gone."""
        found = sum(self.slots(node, NO_AMOUNTS) for node in self._near)
        return max(0, self._part.count - found)

    @cached_property
    def counts(self) -> bool:
        """Whether executions differ in nothing, so that as many find a seat as there are slots."""
        part = self._part
        plain = part.role.resources.gpu_model is None and not part.ports and not part.first
        has_mig = bool(mig_profiles(self._empty))  # what is freed of GPUs may be of another kind than what is needed
        alike = len(self._parts) == 1 and not self._spec.exclusive and not has_mig
        shares = self._cluster.load.free.fresh().sharing  # where two portions that are freed need not make a GPU
        return plain and alike and part.role.resources.portion is None and not shares

    def slots(self, node: NodeId, freed: Amounts) -> int:
        """How many executions of that role fit on a node with so much more; not fewer than do."""
        known = self._bases.get(node)
        if known is None:
            known = self._bases[node] = self._base(node)
        now, base = known
        if freed == NO_AMOUNTS or not base.most:
            return now
        return max(now, self._room(base, freed))

    def hold(self, gangs: Sequence[RunningGang]) -> bool:
        """Whether the whole gang can be placed if these were gone."""
        return self.fit(gangs) is not None

    def fit(self, gangs: Sequence[RunningGang]) -> Placement | None:
        """The seats of the whole gang if these were gone; None: there is no room."""
        key = tuple(gang.attempt for gang in gangs)
        if key not in self._fits:
            there = self._held_by(key)
            nodes = dict.fromkeys((*self._near, *there))
            self._fits[key] = self._place(self._capacity(node, there.get(node, ())) for node in nodes)
        return self._fits[key]

    def may_come_back(self) -> bool:
        """Whether there would be room if nodes were there that are silent for the moment, and not lost."""
        load, nodes = self._cluster.load, self._cluster.nodes
        silent = [node for node in self._cluster.presence.silent if node in nodes and not nodes[node].cordon]
        if not silent:
            return False
        there = [load.claims.beside(free_capacity(load.total.of(node), load.used(node), None)) for node in silent]
        return self._place([*(self._capacity(node, ()) for node in self._near), *there]) is not None

    @cached_property
    def _near(self) -> tuple[NodeId, ...]:
        """Nodes where some executions fit now, or where something is leaving."""
        found: dict[NodeId, None] = {}
        for part in self._parts:
            found |= dict.fromkeys(search.counts(self._spec, part, self._available(self._rooms), {}))
        return tuple(dict.fromkeys((*found, *self._leaving)))

    @cached_property
    def _most(self) -> int:
        """Executions of the role that fit on one node at the most."""
        most = self._spec.max_per_node
        return self._part.count if most is None else min(self._part.count, most)

    @cached_property
    def _empty(self) -> Capacities:
        """What nodes would have if nothing ran."""
        return self._cluster.load.empty.fresh()

    @cached_property
    def _is_by_node(self) -> bool:
        """Whether labels decide that are part of no class."""
        return not self._empty.loose.isdisjoint(self._labels)

    @cached_property
    def _rooms(self) -> Capacities:
        load = self._cluster.load
        return (load.free if self._is_head or load.reservation is None else load.unreserved).fresh()

    @cached_property
    def _leaving(self) -> Mapping[NodeId, Sequence[Execution]]:
        """What is leaving already, by node."""
        return self._held_by(self._cluster.gangs.evictable.leaving)

    def _base(self, node: NodeId) -> tuple[int, _Base]:
        """What a node has once all that is leaving has gone, and how many executions fit into that."""
        part = self._part
        capacity = self._capacity(node, ()) if node in self._leaving else self._rooms.of(node)
        if capacity.pool != self._pool or node in self._closed or not self._suits(node):
            return 0, _NOTHING
        gpus = len(matching(capacity.gpus, part.role.resources)) if capacity.gpus else 0
        most = min(self._most, 1) if part.ports else self._most
        base = _Base(most, gpus, len(capacity.shared), capacity.cpu_millis, capacity.memory)
        if capacity.problem is not None or (self._spec.exclusive and not capacity.idle):
            return 0, base
        if part.role.resources.portion is not None:
            return Draft(capacity).slots(self._spec, part), base
        return (self._room(base, NO_AMOUNTS) if capacity.ports.isdisjoint(part.ports) else 0), base

    def _room(self, base: _Base, freed: Amounts) -> int:
        """How many executions there is enough for, with so much more."""
        need, slots = self._part.role.resources, base.most
        if need.portion is not None:
            gpus = base.gpus + base.shared + -(-freed.gpus // MILLIS_PER_GPU)
            slots = min(slots, gpus * _most_on_one(need.portion) // need.gpus)
        elif need.gpus:
            each = MILLIS_PER_GPU if need.mig is None else thousandths(need.mig)
            shared = base.shared if freed.gpus else 0
            slots = min(slots, (base.gpus + shared + freed.gpus // each) // need.gpus)
        if need.cpu_millis:
            slots = min(slots, (base.cpu_millis + freed.cpus) // need.cpu_millis)
        if need.memory:
            slots = min(slots, (base.memory + freed.memory * BYTES_PER_MIB) // need.memory)
        return max(0, slots)

    def _suits(self, node: NodeId) -> bool:
        """Whether a node is suitable for the job if nothing ran there; alike ones are looked at once."""
        sample = self._empty.sample_of(node)
        if sample is None or node in self._spec.exclude_nodes:
            return False
        if self._is_by_node:
            return unfit(self._spec, self._part.role, self._empty.of(node)) is None
        known = self._suitable.get(id(sample))
        if known is None:
            known = self._suitable[id(sample)] = unfit(self._spec, self._part.role, sample) is None
        return known

    def _place(self, capacities: Iterable[Capacity]) -> Placement | None:
        """Seats on these nodes, if it can be without the one where the job failed last."""
        available = self._available(Capacities(capacities))
        for without in dict.fromkeys((self._avoid, None)):
            fit = placement.place(self._spec, replace(available, without=without))
            if isinstance(fit, Placement):
                return fit
        return None

    def _available(self, capacities: Capacities) -> Available:
        return Available(capacities=capacities, pools=(self._pool,), closed=self._closed)

    def _capacity(self, node: NodeId, also: Sequence[Execution]) -> Capacity:
        """What a node has once all that is leaving has gone, and these executions too; of labels what is asked for."""
        load = self._cluster.load
        capacity, kept = load.once_gone(node, (*self._leaving.get(node, ()), *also)), load.reservation
        if not self._is_head and kept is not None:
            capacity = kept.unreserved(capacity)
        return capacity.with_labels(self._labels) if capacity.labels else capacity

    def _held_by(self, attempts: Iterable[AttemptId]) -> Mapping[NodeId, Sequence[Execution]]:
        """Executions of these attempts that hold something, by node."""
        found: dict[NodeId, list[Execution]] = {}
        for attempt in attempts:
            for member in self._cluster.gangs.members(attempt):
                if member.node is not None and member.id in self._cluster.load.used(member.node).executions:
                    found.setdefault(member.node, []).append(member)
        return found


def _most_on_one(portion: Portion) -> int:
    """How many of a portion one GPU may hold, however much memory it has."""
    return MILLIS_PER_GPU if portion.memory else MILLIS_PER_GPU // portion.thousandths
