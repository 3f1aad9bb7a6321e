"""Claims by node: seats that nobody but the attempt that claims them may have, also while others still stop there."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from coordinator.core.cluster.by_key import Records
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.portions.shared_gpu import beside, common_shares
from coordinator.core.placement.reservation import KEPT_WHOLE, Reservation, Reserved, as_noted, reservation_of
from coordinator.core.records import Attempt, SeatClaim
from muster.domain.ids import JobId, NodeId


class Claims:
    """An index over attempts."""

    def __init__(self, records: Records, total: Callable[[NodeId], Capacity]) -> None:
        """`total` tells what a node has in all."""
        self._records = records
        self._total = total
        self._by_job: dict[JobId, SeatClaim] = {}
        self._by_node: dict[NodeId, dict[JobId, None]] = {}
        self._doubted: dict[NodeId, None] = {}

    def __len__(self) -> int:
        return len(self._by_job)

    def __iter__(self) -> Iterator[JobId]:
        """The jobs that claim something, the oldest claim first; they may change meanwhile."""
        return iter(tuple(self._by_job))

    def of(self, job: JobId) -> Reservation:
        """What a job has claimed, as far as its nodes are known."""
        spec, claim = self._records.jobs[job].spec, self._by_job[job]
        seats = (seat for seat in claim.seats if seat.node in self._records.nodes)
        return reservation_of(job, spec, as_noted(seats), self._total)

    def nodes_of(self, job: JobId) -> tuple[NodeId, ...]:
        """The nodes on which a job has claimed seats."""
        return tuple(dict.fromkeys(seat.node for seat in self._by_job[job].seats))

    def on(self, node: NodeId) -> Iterable[JobId]:
        """The jobs that have claimed seats on a node."""
        return self._by_node.get(node, {})

    def doubt(self, node: NodeId) -> None:
        """Hear that a node may have less than before."""
        if self.on(node):
            self._doubted[node] = None

    def take_doubted(self) -> Iterable[NodeId]:
        """The nodes that may have less than was claimed of them, and forget them."""
        doubted, self._doubted = self._doubted, {}
        return doubted

    def beside(self, capacity: Capacity) -> Capacity:
        """Capacity that nobody has claimed; CPUs, memory and disk are below 0 where more is claimed than there is."""
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


def common(one: Capacity, other: Capacity) -> Capacity:
    """What two capacities of a node both have."""
    both = {gpu.uuid for gpu in other.gpus}
    return replace(
        one,
        gpus=tuple(gpu for gpu in one.gpus if gpu.uuid in both),
        shared=common_shares(one.gpus, one.shared, other.gpus, other.shared),
        cpu_millis=min(one.cpu_millis, other.cpu_millis),
        memory=min(one.memory, other.memory),
        disk=min(one.disk, other.disk),
        ports=one.ports | other.ports,
        idle=one.idle and other.idle,
        problem=one.problem or other.problem,
    )


def _beside(capacity: Capacity, reserved: Reserved) -> Capacity:
    names = {gpu.uuid for gpu in reserved.gpus}
    free = tuple(gpu for gpu in capacity.gpus if gpu.uuid not in names)
    shared = tuple(each for each in capacity.shared if each.gpu.uuid not in names)
    if reserved.portions:
        free, shared = beside(free, shared, reserved.portions)
    return replace(
        capacity,
        gpus=free,
        shared=shared,
        cpu_millis=capacity.cpu_millis - reserved.cpu_millis,
        memory=capacity.memory - reserved.memory,
        disk=capacity.disk - reserved.disk,
        ports=capacity.ports | reserved.ports,
        idle=False,
        problem=capacity.problem or (KEPT_WHOLE if reserved.exclusive else None),
    )
