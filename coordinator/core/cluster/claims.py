"""Claims by node: seats that nobody but the attempt that claims them may have, also while others still stop there."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from coordinator.core.cluster.by_key import Records
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import Placement, Seat
from coordinator.core.placement.reservation import Reservation, Reserved, reservation_of
from coordinator.core.records import Attempt, Claim, Execution, Job
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.ports import node_ports


class Claims:
    """An index over attempts."""

    def __init__(self, records: Records, total: Callable[[NodeId], Capacity]) -> None:
        """`total` tells what a node has in all."""
        self._records = records
        self._total = total
        self._by_job: dict[JobId, Claim] = {}
        self._by_node: dict[NodeId, dict[JobId, None]] = {}

    def __len__(self) -> int:
        return len(self._by_job)

    def __iter__(self) -> Iterator[JobId]:
        """The jobs that claim something, the oldest claim first; they may change meanwhile."""
        return iter(tuple(self._by_job))

    def of(self, job: JobId) -> Reservation:
        """What a job has claimed, as far as its nodes are known."""
        spec, claim = self._records.jobs[job].spec, self._by_job[job]
        seats = (seat for seat in claim.seats if seat.node in self._records.nodes)
        fit = Placement(seats=tuple(Seat(rank=seat.rank, node=seat.node, gpus=seat.gpus) for seat in seats))
        return reservation_of(job, spec, fit, self._total)

    def nodes_of(self, job: JobId) -> tuple[NodeId, ...]:
        """The nodes on which a job has claimed seats."""
        return tuple(dict.fromkeys(seat.node for seat in self._by_job[job].seats))

    def on(self, node: NodeId) -> Iterable[JobId]:
        """The jobs that have claimed seats on a node."""
        return self._by_node.get(node, {})

    def beside(self, capacity: Capacity) -> Capacity:
        """Capacity that nobody has claimed."""
        for job in self.on(capacity.node):
            capacity = _beside(capacity, self.of(job).nodes[capacity.node])
        return capacity

    def changed(self, before: Attempt | None, after: Attempt | None) -> tuple[NodeId, ...]:
        """Hear of an attempt; the nodes on which something else is claimed now."""
        claimed, claims = (None if each is None else each.claim for each in (before, after))
        if claimed is claims:
            return ()
        touched: dict[NodeId, None] = {}
        if before is not None and claimed is not None:
            del self._by_job[before.job]
            for seat in claimed.seats:
                touched[seat.node] = None
                self._by_node.get(seat.node, {}).pop(before.job, None)
        if after is not None and claims is not None:
            self._by_job[after.job] = claims
            for seat in claims.seats:
                touched[seat.node] = None
                self._by_node.setdefault(seat.node, {})[after.job] = None
        return tuple(node for node in touched if node in self._records.nodes)


def grown(capacity: Capacity, executions: Iterable[Execution], total: Capacity, jobs: Mapping[JobId, Job]) -> Capacity:
    """Capacity of a node once these executions have ended there; a broken GPU stays out."""
    gpus = set()
    cpu_millis, memory, ports = capacity.cpu_millis, capacity.memory, capacity.ports
    for execution in executions:
        spec = jobs[execution.job].spec
        role = spec.role_of(execution.rank)
        gpus |= set(execution.gpus)
        cpu_millis += role.resources.cpu_millis
        memory += role.resources.memory or 0
        ports -= node_ports(spec, role, execution.rank)
    free = {gpu.uuid for gpu in capacity.gpus} | gpus
    return replace(
        capacity,
        gpus=tuple(gpu for gpu in total.gpus if gpu.usable and gpu.uuid in free),
        cpu_millis=cpu_millis,
        memory=memory,
        ports=ports,
    )


def common(one: Capacity, other: Capacity) -> Capacity:
    """What two capacities of a node both have."""
    both = {gpu.uuid for gpu in other.gpus}
    return replace(
        one,
        gpus=tuple(gpu for gpu in one.gpus if gpu.uuid in both),
        cpu_millis=min(one.cpu_millis, other.cpu_millis),
        memory=min(one.memory, other.memory),
        ports=one.ports | other.ports,
    )


def _beside(capacity: Capacity, reserved: Reserved) -> Capacity:
    names = {gpu.uuid for gpu in reserved.gpus}
    return replace(
        capacity,
        gpus=tuple(gpu for gpu in capacity.gpus if gpu.uuid not in names),
        cpu_millis=max(0, capacity.cpu_millis - reserved.cpu_millis),
        memory=max(0, capacity.memory - reserved.memory),
        ports=capacity.ports | reserved.ports,
    )
