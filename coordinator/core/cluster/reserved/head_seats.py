"""The seats that are kept for the head of the queue, and when they are all free by the limits of what has them.

The time is worked out node by node, and anew only for nodes about which something changed. It never becomes later by
what is placed on the seats meanwhile, if that ends before it: so nobody who passes the head can starve it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import datetime
from weakref import WeakKeyDictionary

from coordinator.core.cluster.by_key import Records
from coordinator.core.cluster.reserved.noted_head import NotedHead
from coordinator.core.cluster.reserved.sure_ends import sure_end
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.request_classes import RequestClass
from coordinator.core.placement.reservation import Reservation, holds
from coordinator.core.records import Execution
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.job import JobSpec, Resources

MOST_HEAD_NODES = 400
"""Nodes of the head at the most for which it is worked out exactly; nobody passes into the seats of a wider one."""


class HeadSeats:
    """A reservation, and what is known of its nodes since anything about them changed."""

    def __init__(
        self,
        records: Records,
        free: Callable[[NodeId], Capacity],
        held: Callable[[NodeId], Iterable[ExecutionId]],
        once_gone: Callable[[NodeId, Iterable[Execution]], Capacity],
    ) -> None:
        """What a node has that is free, which executions hold something there, and what it has once some have ended."""
        self._records = records
        self._free = free
        self._held = held
        self._once_gone = once_gone
        self.reservation: Reservation | None = None
        """What is kept free for the head; None: nothing is."""
        self.noted = NotedHead()
        """What records tell of it."""
        self._holds_for: JobSpec | None = None
        """The job as it was when its nodes could hold it; terms of its project may change it."""
        self._stale: dict[NodeId, None] = {}
        """Nodes of which the time is to be worked out anew."""
        self._ends: dict[NodeId, datetime] = {}
        """When the seats on each node are free that are not yet."""
        self._endless: dict[NodeId, None] = {}
        """Nodes on which something without a limit has seats of the head."""
        self._widest: tuple[int, int, int] | None = None
        """The most free GPUs, CPUs and memory of any of its nodes, once somebody has asked."""
        self._have_room: WeakKeyDictionary[RequestClass, bool] = WeakKeyDictionary()

    def reserve(self, reservation: Reservation | None) -> None:
        """Keep these seats, and no others."""
        self.reservation = reservation
        self._holds_for = None if reservation is None else self._records.jobs[reservation.job].spec
        self._forget_room()
        self._ends.clear()
        self._endless.clear()
        self._stale = {} if reservation is None else dict.fromkeys(reservation.nodes)

    def has(self, node: NodeId) -> bool:
        """Whether seats are kept on a node."""
        return self.reservation is not None and node in self.reservation.nodes

    def doubt(self, node: NodeId) -> None:
        """Hear that a node may not have what is kept there any more."""
        if self.has(node):
            self._holds_for = None

    def touch(self, node: NodeId) -> None:
        """Hear that what a node runs, or when that ends, is other than before."""
        if self.has(node):
            self._forget_room()
            self._ends.pop(node, None)
            self._endless.pop(node, None)
            self._stale[node] = None

    def could_hold(self, spec: JobSpec, lasting: Callable[[NodeId], Capacity]) -> bool:
        """Whether its nodes could have all its seats for a job if nothing ran there and none was silent."""
        if self.reservation is None:
            return False
        if self._holds_for is not spec and holds(self.reservation, spec, map(lasting, self.reservation.nodes)):
            self._holds_for = spec
        return self._holds_for is spec

    @property
    def free_by(self) -> datetime | None:
        """When all of them are free at the latest; None: nobody knows, as something there has no limit."""
        kept = self.reservation
        if kept is None or len(kept.nodes) > MOST_HEAD_NODES:
            return None
        spec = self._records.jobs[kept.job].spec
        while self._stale and not self._endless:
            node, _ = self._stale.popitem()
            self._work_out(kept, spec, node)
        return None if self._endless else max(self._ends.values(), default=None)

    def has_room(self, request_class: RequestClass, spec: Callable[[], JobSpec]) -> bool:
        """Whether its nodes may have room for an execution of jobs of a class, of which one has this spec."""
        known = self._have_room.get(request_class)
        if known is None:
            known = self._have_room[request_class] = any(self._may_take(role.resources) for role in spec().roles)
        return known

    def _may_take(self, need: Resources) -> bool:
        """Whether one of its nodes may have as much; False is sure."""
        if self._widest is None:
            nodes = [] if self.reservation is None else [self._free(node) for node in self.reservation.nodes]
            gpus = max((len(each.gpus) + len(each.shared) for each in nodes), default=0)
            cpu_millis = max((each.cpu_millis for each in nodes), default=0)
            self._widest = (gpus, cpu_millis, max((each.memory for each in nodes), default=0))
        gpus, cpu_millis, memory = self._widest
        return need.gpus <= gpus and need.cpu_millis <= cpu_millis and (need.memory or 0) <= memory

    def _forget_room(self) -> None:
        if self._widest is not None:
            self._widest = None
            self._have_room.clear()

    def _work_out(self, kept: Reservation, spec: JobSpec, node: NodeId) -> None:
        """Find the first ends on a node after which it has the seats."""
        held = [self._records.executions[each] for each in self._held(node)]
        ends = ((sure_end(self._records, each), each) for each in held)
        known = sorted(((at, each.id, each) for at, each in ends if at is not None), key=lambda end: end[:2])

        def has_seats(gone: int) -> bool:
            return holds(kept, spec, [self._once_gone(node, [each for _, _, each in known[:gone]])])

        first = bisect_left(range(len(known) + 1), True, key=has_seats)
        if first > len(known):
            self._endless[node] = None
        elif first:
            self._ends[node] = known[first - 1][0]
