"""What departments and projects hold and want, and what their pools have."""

from collections import Counter
from collections.abc import Callable

from coordinator.core.cluster.by_key import Records
from coordinator.core.placement.node_capacity import UsedCapacity
from coordinator.core.records import Execution, Job, Node
from coordinator.core.sharing.patience import BarPatience
from coordinator.core.sharing.standing import Tally
from coordinator.core.sharing.units import Units
from muster.domain.fleet.access import Project
from muster.domain.fleet.quota import (
    BYTES_PER_MIB,
    MILLIS_PER_GPU,
    NO_AMOUNTS,
    Amounts,
    Department,
    amounts_of,
    amounts_of_job,
)
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL, State

THE_POOL = "default"
"""The pool that every node belongs to."""


class UnitLoad:
    """An index over executions, nodes, projects and departments."""

    def __init__(
        self, records: Records, is_lost: Callable[[NodeId], bool], used: Callable[[NodeId], UsedCapacity]
    ) -> None:
        """`used` tells what executions have been given of a node."""
        self.units = Units()
        self._records = records
        self._is_lost = is_lost
        self._used = used
        self._holding: Counter[AttemptId] = Counter()
        """How many executions of each attempt hold something."""
        self._touched: dict[NodeId, None] = {}
        """Nodes that may have something else than is known."""
        self._capacities: dict[NodeId, Amounts] = {}
        self._capacity = NO_AMOUNTS
        self.patience = BarPatience()

    # reading

    def settle(self) -> None:
        """Have capacities and shares as they are now; costs nothing unless something has changed."""
        if self._touched:
            for node in self._touched:
                before, after = self._capacities.pop(node, NO_AMOUNTS), self._capacity_of(node)
                self._capacity = self._capacity.plus(before.times(-1)).plus(after)
                if after != NO_AMOUNTS:
                    self._capacities[node] = after
            self._touched.clear()
            self.units.set_capacity(THE_POOL, self._capacity)
        self.units.share_out(THE_POOL)

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that there are, by name."""
        return (THE_POOL,)

    @staticmethod
    def pool_of(job: Job) -> str:  # noqa: ARG004 - what the job says of pools is in it
        """The pool in which a job waits or runs."""
        return THE_POOL

    # changing

    def touch(self, node: NodeId) -> None:
        """Look anew at what a node has: it is new, gone, lost, back, cordoned, or has other things than before."""
        self._touched[node] = None

    def node_changed(self, before: Node | None, after: Node | None) -> None:
        """Hear of a node that is new, other than before, or forgotten."""
        node = before if after is None else after
        assert node is not None
        self.touch(node.name)

    def unit_changed(self, after: Project | Department) -> None:
        """Hear of a project or a department that is new or other than before."""
        self.units.put(after.unit)

    def unit_dropped(self, name: str) -> None:
        """Hear that a project or a department is forgotten."""
        self.units.remove(name)

    def changed(self, before: Execution | None, after: Execution | None) -> None:
        """Hear of an execution that is new, other than before, or forgotten because it has ended."""
        execution = before if after is None else after
        assert execution is not None
        state = None if after is None else after.state
        if before is not None and before.state is state:
            return
        job = self._records.jobs[execution.job]
        if execution.rank == 0:  # it stands for its gang, as all of a gang leave the queue in one step
            self._queued(job, _is(before, State.QUEUED), _is(after, State.QUEUED))
        held, holds = _holds(before), _holds(after)
        leaving, leaves = _is(before, State.STOPPING), _is(after, State.STOPPING)
        if held == holds and leaving == leaves:
            return
        pool, amounts = self.pool_of(job), amounts_of(job.spec, execution.rank)
        if held != holds:
            self._hold(job, execution, pool, amounts, 1 if holds else -1)
        if leaving != leaves:
            self.units.count(job.spec.project, pool, Tally.LEAVING, amounts, 1 if leaves else -1)

    # inside

    def _queued(self, job: Job, waited: bool, waits: bool) -> None:
        if waited != waits:
            sign = 1 if waits else -1
            self.units.count(job.spec.project, self.pool_of(job), Tally.WAITING, amounts_of_job(job.spec), sign)
            self.units.count_jobs(job.spec.project, job.owner, queued=sign)

    def _hold(self, job: Job, execution: Execution, pool: str, amounts: Amounts, sign: int) -> None:
        project = job.spec.project
        self.units.count(project, pool, Tally.HELD, amounts, sign)
        if job.job_class is JobClass.GUARANTEED:
            self.units.count(project, pool, Tally.FIXED, amounts, sign)
        if execution.node is not None and self._is_cordoned(execution.node):
            self.touch(execution.node)
        before = self._holding[execution.attempt_id]
        after = self._holding[execution.attempt_id] = before + sign
        if not before or not after:
            self.units.count_jobs(project, job.owner, running=sign)
        if not after:
            del self._holding[execution.attempt_id]

    def _is_cordoned(self, name: NodeId) -> bool:
        node = self._records.nodes.get(name)
        return node is not None and node.cordon is not None

    def _capacity_of(self, name: NodeId) -> Amounts:
        """What a node adds to its pool: what it has, or while it is cordoned what is held there."""
        node = self._records.nodes.get(name)
        if node is None or self._is_lost(name):
            return NO_AMOUNTS
        if node.cordon is not None:
            used = self._used(name)
            return Amounts(len(used.gpus) * MILLIS_PER_GPU, used.cpu_millis, used.memory // BYTES_PER_MIB)
        usable = sum(gpu.usable for gpu in node.inventory.gpus)
        return Amounts(usable * MILLIS_PER_GPU, node.inventory.cpus * 1000, node.inventory.memory // BYTES_PER_MIB)


def _is(execution: Execution | None, state: State) -> bool:
    return execution is not None and execution.state is state


def _holds(execution: Execution | None) -> bool:
    return execution is not None and execution.state not in NOT_PLACED and execution.state not in TERMINAL
