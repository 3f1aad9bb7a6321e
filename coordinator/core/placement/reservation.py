"""What is kept free for the head of the queue, so that smaller jobs that pass it can never starve it.

A head that does not fit gets the seats that it would have if nothing ran. Jobs behind it are placed only beside these
seats: what runs there now drains, nothing new takes its place, and once it has drained the head fits.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from coordinator.core.placement.capacity import Capacities, Capacity
from coordinator.core.placement.placement import Available, NoFit, Placement, place, unfit
from muster.domain.fleet.node import Gpu
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.ports import node_ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """What is kept of one node."""

    gpus: tuple[Gpu, ...] = ()
    cpu_millis: int = 0
    memory: int = 0
    ports: frozenset[int] = frozenset()
    roles: tuple[Role, ...] = ()
    """For whom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The seats of one job that waits, by node."""

    job: JobId
    fit: Placement
    nodes: Mapping[NodeId, Reserved]

    def beside(self, room: Capacity) -> Capacity:
        """What others may use of a room."""
        return _beside(room, self.nodes[room.node]) if room.node in self.nodes else room


def reserve(job: JobId, spec: JobSpec, empty: Capacities) -> Reservation | None:
    """Seats for the head, as if nothing ran; None: it could not run on the nodes that are there, so nothing is kept."""
    fit = place(spec, Available(stock=empty))
    if isinstance(fit, NoFit):
        return None
    nodes: dict[NodeId, Reserved] = {}
    for seat in fit.seats:
        role = spec.role_of(seat.rank)
        kept = nodes.get(seat.node, Reserved())
        nodes[seat.node] = Reserved(
            gpus=(*kept.gpus, *(gpu for gpu in empty.room(seat.node).gpus if gpu.uuid in seat.gpus)),
            cpu_millis=kept.cpu_millis + role.resources.cpu_millis,
            memory=kept.memory + (role.resources.memory or 0),
            ports=kept.ports | node_ports(spec, role, seat.rank),
            roles=kept.roles if role in kept.roles else (*kept.roles, role),
        )
    return Reservation(job=job, fit=fit, nodes=nodes)


def holds(reservation: Reservation, spec: JobSpec, rooms: Iterable[Capacity]) -> bool:
    """Whether the rooms of its nodes, as they are given, have all its seats."""
    return all(_has(spec, room, reservation.nodes[room.node]) for room in rooms)


def _has(spec: JobSpec, room: Capacity, kept: Reserved) -> bool:
    usable = {gpu.uuid for gpu in room.gpus}
    return (
        all(gpu.uuid in usable for gpu in kept.gpus)
        and kept.cpu_millis <= room.cpu_millis
        and kept.memory <= room.memory
        and kept.ports.isdisjoint(room.ports)
        and all(unfit(spec, role, room) is None for role in kept.roles)
    )


def _beside(room: Capacity, kept: Reserved) -> Capacity:
    """Of a kept GPU that is not free yet, a free one of its model takes the place, so that the head need not wait."""
    names = {gpu.uuid for gpu in kept.gpus}
    free = [gpu for gpu in room.gpus if gpu.uuid not in names]
    missing = names.difference(gpu.uuid for gpu in room.gpus)
    for absent in (gpu for gpu in kept.gpus if gpu.uuid in missing):
        stand_in = next((gpu for gpu in free if gpu.model == absent.model), None)
        if stand_in is not None:
            free.remove(stand_in)
    return replace(
        room,
        gpus=tuple(free),
        cpu_millis=max(0, room.cpu_millis - kept.cpu_millis),
        memory=max(0, room.memory - kept.memory),
        ports=room.ports | kept.ports,
    )
