"""The nodes on which a job may find seats once others have gone, and a search on these few alone."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from coordinator.core.cluster.claims import grown
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement import placement, search
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.draft import Draft
from coordinator.core.placement.node_capacity import free_capacity
from coordinator.core.placement.parts import Part, part_of
from coordinator.core.placement.placement import NoFit, Placement
from coordinator.core.records import Execution, Job
from coordinator.core.scheduling.eviction.gangs import RunningGang
from muster.domain.fleet.node import NodeState
from muster.domain.ids import AttemptId, NodeId


class EvictionRooms:
    """The rooms of one job, beside what others have claimed, and what is kept for the head where it is another one."""

    def __init__(self, cluster: Cluster, job: Job, *, is_head: bool) -> None:
        self._cluster = cluster
        self._job = job
        self._is_head = is_head
        self._leaving = _by_node(cluster, cluster.evictable.leaving)
        self._part = max(
            (part_of(job.spec, place) for place in range(len(job.spec.roles))),
            key=lambda part: (part.role.resources.gpus, part.role.resources.cpu_millis),
        )
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
        capacities = Capacities(self._capacity(node, gangs) for node in nodes)
        fit = placement.place(self._job.spec, Available(capacities=capacities))
        return fit if isinstance(fit, Placement) else None

    def may_come_back(self) -> bool:
        """Whether there would be room if nodes were there that are silent for the moment, and not lost."""
        cluster, silent = self._cluster, []
        for node in cluster.nodes:
            presence = cluster.presence[node]
            if presence.session is None and presence.state is not NodeState.LOST and not cluster.nodes[node].cordon:
                silent.append(free_capacity(cluster.load.total.of(node), cluster.load.used(node), None))
        if not silent:
            return False
        capacities = Capacities([*(self._capacity(node, ()) for node in self._near), *silent])
        return not isinstance(placement.place(self._job.spec, Available(capacities=capacities)), NoFit)

    def slots(self, node: NodeId, gangs: Sequence[RunningGang]) -> int:
        """How many executions of that role fit on a node if these gangs were gone."""
        key = (node, tuple(gang.attempt for gang in gangs))
        if key not in self._slots:
            self._slots[key] = Draft(self._capacity(node, gangs)).slots(self._job.spec, self._part)
        return self._slots[key]

    @cached_property
    def _near(self) -> tuple[NodeId, ...]:
        """Nodes where some executions fit now, or where something is leaving."""
        load = self._cluster.load
        rooms = load.free if self._is_head or load.reservation is None else load.unreserved
        available = Available(capacities=rooms.fresh())
        found: dict[NodeId, None] = {}
        for place in range(len(self._job.spec.roles)):
            part: Part = part_of(self._job.spec, place)
            found |= dict.fromkeys(search.counts(self._job.spec, part, available, {}))
        return tuple(dict.fromkeys((*found, *self._leaving)))

    def _capacity(self, node: NodeId, gangs: Sequence[RunningGang]) -> Capacity:
        cluster, load = self._cluster, self._cluster.load
        going: list[Execution] = list(self._leaving.get(node, ()))
        holding = load.used(node).executions
        for gang in gangs:
            if node in gang.freed:
                going += [each for each in cluster.gangs.members(gang.attempt) if each.id in holding]
        capacity = load.claims.beside(grown(load.bare(node), going, load.total.of(node), cluster.jobs))
        kept = load.reservation
        return capacity if self._is_head or kept is None else kept.unreserved(capacity)


def _by_node(cluster: Cluster, attempts: Iterable[AttemptId]) -> Mapping[NodeId, list[Execution]]:
    found: dict[NodeId, list[Execution]] = {}
    for attempt in attempts:
        for member in cluster.gangs.members(attempt):
            if member.node is not None and member.id in cluster.load.used(member.node).executions:
                found.setdefault(member.node, []).append(member)
    return found
