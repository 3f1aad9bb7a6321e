"""What is kept free for the head of the queue, so that smaller jobs that pass it can never starve it.

A head that does not fit gets the seats that it would have if nothing ran. Jobs behind it are placed only beside these
seats: what runs there now drains, nothing new takes its place, and once it has drained the head fits.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import NoFit, Placement, Seat, place
from coordinator.core.placement.portions.shared_gpu import GivenPortion, beside, hold_all
from coordinator.core.placement.suitable import excluded, unfit
from coordinator.core.placement.topology.together import is_together
from coordinator.core.records import ClaimedSeat
from muster.domain.fleet.node import Gpu
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.ports import node_ports

KEPT_WHOLE = "is kept for a job that has its nodes for itself"
"""Why nothing else is placed on a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """Capacity of one node that is kept."""

    gpus: tuple[Gpu, ...] = ()
    portions: tuple[GivenPortion, ...] = ()
    cpu_millis: int = 0
    memory: int = 0
    disk: int = 0
    ports: frozenset[int] = frozenset()
    exclusive: bool = False
    """Whether the whole node is kept."""
    roles: tuple[Role, ...] = ()
    """The roles for which it is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The capacity that is kept for one waiting job, by node."""

    job: JobId
    fit: Placement
    nodes: Mapping[NodeId, Reserved]

    def unreserved(self, capacity: Capacity) -> Capacity:
        """Capacity that is left for other jobs."""
        return _unreserved(capacity, self.nodes[capacity.node]) if capacity.node in self.nodes else capacity


def reserve(job: JobId, spec: JobSpec, available: Available) -> Reservation | None:
    """Seats for the head in what would be there if nothing ran; None: it could not run on the nodes that are there."""
    fit, empty = place(spec, available), available.capacities
    if isinstance(fit, NoFit):
        return None
    return reservation_of(job, spec, fit, empty.of)


def reservation_of(job: JobId, spec: JobSpec, fit: Placement, totals: Callable[[NodeId], Capacity]) -> Reservation:
    """The capacity of these seats, as far as their nodes have it; `totals` tells what a node has in all."""
    nodes: dict[NodeId, Reserved] = {}
    for seat in fit.seats:
        role = spec.role_of(seat.rank)
        reserved, portion = nodes.get(seat.node, Reserved()), role.resources.portion
        gpus = [gpu for gpu in totals(seat.node).gpus if gpu.uuid in seat.gpus]
        nodes[seat.node] = Reserved(
            gpus=(*reserved.gpus, *(gpus if portion is None else ())),
            portions=(*reserved.portions, *(() if portion is None else ((gpu, portion) for gpu in gpus))),
            cpu_millis=reserved.cpu_millis + role.resources.cpu_millis,
            memory=reserved.memory + (role.resources.memory or 0),
            disk=reserved.disk + (role.resources.disk or 0),
            ports=reserved.ports | node_ports(spec, role, seat.rank),
            exclusive=spec.exclusive,
            roles=reserved.roles if role in reserved.roles else (*reserved.roles, role),
        )
    return Reservation(job=job, fit=fit, nodes=nodes)


def noted(fit: Placement) -> tuple[ClaimedSeat, ...]:
    """These seats as a record has them."""
    return tuple(ClaimedSeat(rank=seat.rank, node=seat.node, gpus=seat.gpus) for seat in fit.seats)


def as_noted(seats: Iterable[ClaimedSeat]) -> Placement:
    """The seats that a record has."""
    return Placement(seats=tuple(Seat(rank=seat.rank, node=seat.node, gpus=seat.gpus) for seat in seats))


def holds(reservation: Reservation, spec: JobSpec, capacities: Iterable[Capacity]) -> bool:
    """Whether the given capacities of its nodes have all its seats."""
    nodes = list(capacities)
    return is_together(spec, nodes) and all(
        _has(spec, capacity, reservation.nodes[capacity.node]) for capacity in nodes
    )


def _has(spec: JobSpec, capacity: Capacity, reserved: Reserved) -> bool:
    usable = {gpu.uuid for gpu in capacity.gpus}
    return (
        all(gpu.uuid in usable for gpu in reserved.gpus)
        and hold_all(capacity.gpus, capacity.shared, reserved.portions)
        and reserved.cpu_millis <= capacity.cpu_millis
        and reserved.memory <= capacity.memory
        and (not reserved.disk or reserved.disk <= capacity.disk)
        and reserved.ports.isdisjoint(capacity.ports)
        and excluded(spec, capacity) is None
        and all(unfit(spec, role, capacity) is None for role in reserved.roles)
    )


def _unreserved(capacity: Capacity, reserved: Reserved) -> Capacity:
    """Capacity beside what is reserved; for a reserved GPU that is in use, a free one of its model is kept.

    No more portions are given of a GPU that is reserved as a whole, so that those who have some drain.
    """
    names = {gpu.uuid for gpu in reserved.gpus}
    free = [gpu for gpu in capacity.gpus if gpu.uuid not in names]
    missing = names.difference(gpu.uuid for gpu in capacity.gpus)
    for absent in (gpu for gpu in reserved.gpus if gpu.uuid in missing):
        stand_in = next((gpu for gpu in free if (gpu.model, gpu.mig) == (absent.model, absent.mig)), None)
        if stand_in is not None:
            free.remove(stand_in)
    shared = tuple(each for each in capacity.shared if each.gpu.uuid not in names) if capacity.shared else ()
    left, shared = beside(free, shared, reserved.portions) if reserved.portions else (tuple(free), shared)
    return replace(
        capacity,
        gpus=left,
        shared=shared,
        cpu_millis=max(0, capacity.cpu_millis - reserved.cpu_millis),
        memory=max(0, capacity.memory - reserved.memory),
        disk=max(0, capacity.disk - reserved.disk),
        ports=capacity.ports | reserved.ports,
        idle=False,
        problem=capacity.problem or (KEPT_WHOLE if reserved.exclusive else None),
    )
