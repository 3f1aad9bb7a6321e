"""The nodes on which a job may find seats once others have gone, and a search on these few alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement import placement, search
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.node_capacity import free_capacity
from coordinator.core.placement.parts import part_of
from coordinator.core.placement.placement import Placement
from coordinator.core.records import Execution, Job
from coordinator.core.scheduling.eviction.gangs import RunningGang
from coordinator.core.scheduling.windows import closed_nodes
from muster.domain.ids import AttemptId, NodeId


class EvictionRooms:
    """What one job may have in a pool beside what is claimed, and beside what is kept for the head if it is another."""

    def __init__(self, cluster: Cluster, job: Job, pool: str, now: datetime, *, is_head: bool) -> None:
        self._cluster = cluster
        self._spec = job.spec
        self._pool = pool
        self._is_head = is_head
        self._closed = closed_nodes(cluster, job.spec, now)
        self._avoid = cluster.newest_attempt(job.id).avoid
        self._members: dict[AttemptId, Mapping[NodeId, list[Execution]]] = {}
        """What each gang holds, by node, as far as somebody asked."""
        parts = (part_of(job.spec, place) for place in range(len(job.spec.roles)))
        self._part = max(parts, key=lambda part: (part.role.resources.gpus, part.role.resources.cpu_millis))
        self._slots: dict[tuple[NodeId, tuple[AttemptId, ...]], int] = {}

    @cached_property
    def missing(self) -> int:
        """How many executions of the role that needs most find no seat, though all that is leaving has gone."""
        found = sum(self.slots(node, ()) for node in self._near)
        return max(0, self._part.count - found)

    def gain(self, gangs: Sequence[RunningGang]) -> int:
        """How many more executions of that role fit on the nodes of these gangs if they were gone."""
        nodes = dict.fromkeys(node for gang in gangs for node in gang.freed)
        there = {node: tuple(gang for gang in gangs if node in gang.freed) for node in nodes}
        return sum(self.slots(node, on_it) - self.slots(node, ()) for node, on_it in there.items())

    def hold(self, gangs: Sequence[RunningGang]) -> bool:
        """Whether the whole gang can be placed if these were gone."""
        return self.fit(gangs) is not None

    def fit(self, gangs: Sequence[RunningGang]) -> Placement | None:
        """The seats of the whole gang if these were gone; None: there is no room."""
        nodes = dict.fromkeys((*self._near, *(node for gang in gangs for node in gang.freed)))
        return self._place(self._capacity(node, gangs) for node in nodes)

    def may_come_back(self) -> bool:
        """Whether there would be room if nodes were there that are silent for the moment, and not lost."""
        load, nodes = self._cluster.load, self._cluster.nodes
        silent = [node for node in self._cluster.presence.silent if node in nodes and not nodes[node].cordon]
        if not silent:
            return False
        there = [load.claims.beside(free_capacity(load.total.of(node), load.used(node), None)) for node in silent]
        return self._place([*(self._capacity(node, ()) for node in self._near), *there]) is not None

    def slots(self, node: NodeId, gangs: Sequence[RunningGang]) -> int:
        """How many executions of that role fit on a node if these gangs were gone."""
        key = (node, tuple(gang.attempt for gang in gangs))
        if key not in self._slots:
            capacity = self._capacity(node, gangs)
            is_open = capacity.pool == self._pool and node not in self._closed
            self._slots[key] = Draft(capacity).slots(self._spec, self._part) if is_open else 0
        return self._slots[key]

    @cached_property
    def _near(self) -> tuple[NodeId, ...]:
        """Nodes where some executions fit now, or where something is leaving."""
        load = self._cluster.load
        rooms = load.free if self._is_head or load.reservation is None else load.unreserved
        found: dict[NodeId, None] = {}
        for place in range(len(self._spec.roles)):
            found |= dict.fromkeys(
                search.counts(self._spec, part_of(self._spec, place), self._available(rooms.fresh()), {})
            )
        return tuple(dict.fromkeys((*found, *self._leaving)))

    @cached_property
    def _leaving(self) -> Mapping[NodeId, list[Execution]]:
        """What is leaving already, by node."""
        return self._held_by(self._cluster.gangs.evictable.leaving)

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

    def _capacity(self, node: NodeId, gangs: Sequence[RunningGang]) -> Capacity:
        """What a node has once all that is leaving has gone, and these too."""
        going = list(self._leaving.get(node, ()))
        for gang in gangs:
            if gang.attempt not in self._members:
                self._members[gang.attempt] = self._held_by((gang.attempt,))
            going += self._members[gang.attempt].get(node, ())
        capacity, kept = self._cluster.load.once_gone(node, going), self._cluster.load.reservation
        return capacity if self._is_head or kept is None else kept.unreserved(capacity)

    def _held_by(self, attempts: Iterable[AttemptId]) -> Mapping[NodeId, list[Execution]]:
        """Executions of these attempts that hold something, by node."""
        found: dict[NodeId, list[Execution]] = {}
        for attempt in attempts:
            for member in self._cluster.gangs.members(attempt):
                if member.node is not None and member.id in self._cluster.load.used(member.node).executions:
                    found.setdefault(member.node, []).append(member)
        return found
