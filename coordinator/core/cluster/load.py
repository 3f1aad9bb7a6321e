"""What each node runs, and the capacity of the nodes: total, empty, free, unreserved."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from coordinator.core.cluster.by_key import Records
from coordinator.core.cluster.evictions.claims import Claims, common
from coordinator.core.cluster.reserved.head_seats import HeadSeats
from coordinator.core.cluster.windows import Windows
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.live_capacities import LiveCapacities
from coordinator.core.placement.node_capacity import UsedCapacity, free_capacity, total_capacity
from coordinator.core.placement.reservation import Reservation
from coordinator.core.records import Attempt, Execution, Node
from muster.domain.fleet.pool import levels_of, pool_of
from muster.domain.ids import ExecutionId, NodeId, execution_id
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL, State
from muster.domain.jobs.ports import node_ports


class NodeProblems(NamedTuple):
    """Why nodes take nothing."""

    now: Callable[[NodeId], str | None]
    """Why nothing can be placed on a node at all; None: something can."""
    lasting: Callable[[NodeId], str | None]
    """Why no seats are kept there either; None: they are."""


class Load:
    """An index over executions and nodes."""

    def __init__(self, records: Records, problems: NodeProblems, opened: Callable[[], None]) -> None:
        """`opened` is told when windows close less."""
        self._records = records
        self._problems = problems
        self._planned: defaultdict[NodeId, dict[ExecutionId, None]] = defaultdict(dict)
        self._used: defaultdict[NodeId, UsedCapacity] = defaultdict(UsedCapacity)
        self.claims = Claims(records, lambda node: self.total.of(node))  # noqa: PLW0108 - there is none yet
        self.head = HeadSeats(
            records,
            lambda node: self.free.of(node),  # noqa: PLW0108 - there is none yet
            lambda node: self._used[node].executions,
            self.once_gone,
        )
        """What is known of the seats that are reserved."""
        self.windows = Windows(records.nodes, opened)
        """Nodes that are closed to some jobs from a time to a time."""
        self.total = LiveCapacities(lambda node: total_capacity(records.nodes[node], records.pools.values()))
        """Capacity of all nodes, there or not."""
        self.empty = LiveCapacities(lambda node: free_capacity(self.total.of(node), UsedCapacity(), problems.now(node)))
        """Capacity that would be free if nothing ran."""
        self.free = LiveCapacities(self._free)
        """Capacity that is free now and that nobody has claimed."""
        self.unreserved = LiveCapacities(self._unreserved)
        """Free capacity beside what is reserved; all that is free while nothing is."""
        self._touched: dict[NodeId, None] = {}
        """Nodes that are other than when they were taken last."""

    # reading

    def planned(self, node: NodeId) -> Iterable[Execution]:
        """The executions that the plan of a node lists: live ones, and ended ones that it has to send something of."""
        return (self._records.executions[execution] for execution in self._planned[node])

    def is_planned(self, node: NodeId, execution: ExecutionId) -> bool:
        """Whether the plan of a node lists an execution."""
        return execution in self._planned[node]

    def used(self, node: NodeId) -> UsedCapacity:
        """Capacity of a node that executions have been given; not to be changed."""
        return self._used[node]

    @property
    def reservation(self) -> Reservation | None:
        """What is kept free for the head of the queue."""
        return self.head.reservation

    def still_holds(self, spec: JobSpec) -> bool:
        """Whether the nodes of what is reserved could hold it all for a job if nothing ran there.

        One that is silent for a moment could: its seats are kept until it is back, or is lost.
        """
        return self.head.could_hold(
            spec, lambda node: free_capacity(self.total.of(node), UsedCapacity(), self._problems.lasting(node))
        )

    # changing

    def reserve(self, reservation: Reservation | None) -> None:
        """Keep this reservation from now on, and no other."""
        if reservation is self.reservation:
            return
        for kept in (self.reservation, reservation):
            for node in kept.nodes if kept is not None else ():
                self.unreserved.touch(node)
        self.head.reserve(reservation)

    def touch(self, node: NodeId) -> None:
        """Work out the capacity of a node anew: its presence changed."""
        self.empty.touch(node)
        self.head.doubt(node)
        self._touch_used(node)

    def attempt_changed(self, before: Attempt | None, after: Attempt | None) -> None:
        """Hear of an attempt that is new, other than before, or forgotten: it may claim, or end, otherwise."""
        self.head.noted.changed(before, after)
        for node in self.claims.changed(before, after):
            self._touch_used(node)
        if self.reservation is None or before is None or after is None or before.released_at == after.released_at:
            return
        for rank in range(self._records.jobs[after.job].spec.size):
            execution = self._records.executions.get(execution_id(after.job, after.number, rank))
            if execution is not None and execution.node is not None:
                self.head.touch(execution.node)

    def bare(self, node: NodeId) -> Capacity:
        """Capacity that nothing runs on, whoever has claimed it."""
        return free_capacity(self.total.of(node), self._used[node], self._problems.now(node))

    def once_stopped(self, node: NodeId) -> Capacity:
        """Capacity that nobody runs on or has claimed once all have ended that were ordered to stop."""
        return self.once_gone(node, [each for each in self.planned(node) if each.state is State.STOPPING])

    def once_gone(self, node: NodeId, executions: Iterable[Execution]) -> Capacity:
        """Capacity that nobody runs on or has claimed once these executions have ended; each holds something there."""
        going = tuple(executions)
        if len(going) == len(self._used[node].executions):
            return self.claims.beside(self.empty.of(node))
        left = self._used[node].copy()
        for execution in going:
            spec = self._records.jobs[execution.job].spec
            role = spec.role_of(execution.rank)
            left.give_back(execution.id, role.resources, execution.gpus, node_ports(spec, role, execution.rank))
        return self.claims.beside(free_capacity(self.total.of(node), left, self._problems.now(node)))

    def node_changed(self, before: Node | None, after: Node | None) -> None:
        """Hear of a node that is new, other than before, or forgotten because it runs nothing."""
        self.windows.node_changed(before, after)
        if after is not None:
            self.total.touch(after.name)
            self.touch(after.name)
            self.claims.doubt(after.name)
            return
        assert before is not None
        if self.head.has(before.name):
            self.reserve(None)
        self._planned.pop(before.name, None)
        self._used.pop(before.name, None)
        self._touched[before.name] = None
        for capacities in (self.total, self.empty, self.free, self.unreserved):
            capacities.forget(before.name)

    def pools_changed(self) -> None:
        """Hear that pools are others than before, so that nodes may be in another one, or elsewhere in theirs."""
        pools = self._records.pools.values()
        for node in self._records.nodes.values():
            known, pool = self.total.of(node.name), pool_of(node.inventory.labels, pools)
            if known.pool != pool or known.levels != levels_of(pool, pools):
                self.total.touch(node.name)
                self.touch(node.name)

    def changed(self, before: Execution | None, after: Execution | None) -> None:
        """Hear of an execution that is new, other than before, or forgotten because it has ended."""
        execution = before if after is None else after
        assert execution is not None
        if execution.node is None:
            return
        if self.claims.on(execution.node):
            self._touch_used(execution.node)
        self.head.touch(execution.node)
        held, holds_ = before is not None and _holds(before), after is not None and _holds(after)
        if held != holds_:
            self._use(execution, execution.node, taken=holds_)
        if after is not None and _listed(after):
            self._planned[execution.node][execution.id] = None
        else:
            self._planned[execution.node].pop(execution.id, None)

    def _use(self, execution: Execution, node: NodeId, *, taken: bool) -> None:
        self._touch_used(node)
        spec = self._records.jobs[execution.job].spec
        role = spec.role_of(execution.rank)
        usage = self._used[node]
        ports = node_ports(spec, role, execution.rank)
        if taken:
            usage.take(execution.id, role.resources, execution.gpus, ports, exclusive=spec.exclusive)
        else:
            usage.give_back(execution.id, role.resources, execution.gpus, ports)

    def take_touched(self) -> Iterable[NodeId]:
        """Nodes that have, run or are believed to be something else than when this was asked last."""
        touched, self._touched = self._touched, {}
        return touched

    def _touch_used(self, node: NodeId) -> None:
        self._touched[node] = None
        self.free.touch(node)
        self.unreserved.touch(node)
        self.head.touch(node)

    def _free(self, node: NodeId) -> Capacity:
        bare = self.bare(node)
        if not self.claims.on(node):
            return bare
        return common(bare, self.once_stopped(node))

    def _unreserved(self, node: NodeId) -> Capacity:
        free, kept = self.free.of(node), self.reservation
        return free if kept is None else kept.unreserved(free)


def _holds(execution: Execution) -> bool:
    return execution.state not in NOT_PLACED and execution.state not in TERMINAL


def _listed(execution: Execution) -> bool:
    """A lost one, too: its node may come back, with the rest of its log."""
    waits = not execution.log_complete or execution.stores or execution.stores_again
    return execution.state not in TERMINAL or waits
