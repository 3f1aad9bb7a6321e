"""What departments and projects hold and want, and what their pools have."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from coordinator.core.cluster.by_key import Records
from coordinator.core.placement.node_capacity import UsedCapacity
from coordinator.core.records import Attempt, Execution, Job, Node
from coordinator.core.sharing.leaf_order import LeafOrder
from coordinator.core.sharing.patience import BarPatience
from coordinator.core.sharing.pool_capacities import PoolCapacities
from coordinator.core.sharing.standing import Tally
from coordinator.core.sharing.units import Units
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import DEFAULT_POOL, pool_of
from muster.domain.fleet.quota import (
    BYTES_PER_MIB,
    MILLIS_PER_GPU,
    NO_AMOUNTS,
    Amounts,
    Department,
    amounts_of,
    amounts_of_job,
)
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL, State


class UnitLoad:
    """An index over executions, nodes, projects and departments.

    A queued job counts in the first pool that it wants, and in that one until it leaves the queue. What it holds counts
    in the pool of its nodes as it was when it was placed there.
    """

    def __init__(
        self, records: Records, is_lost: Callable[[NodeId], bool], used: Callable[[NodeId], UsedCapacity]
    ) -> None:
        """`used` tells what executions have been given of a node."""
        self.units = Units()
        self.patience = BarPatience(self.units.touch)
        self.order = LeafOrder()
        self._records = records
        self._is_lost = is_lost
        self._used = used
        self._waits_in: dict[JobId, str] = {}
        self._claims_in: dict[AttemptId, str] = {}
        """The pools in which attempts have claimed seats."""
        self._held: dict[AttemptId, _Held] = {}
        self._touched: dict[NodeId, None] = {}
        """Nodes that may have something else than is known."""
        self._capacities = PoolCapacities()

    # reading

    def settle(self) -> None:
        """Have capacities and shares as they are now; costs nothing unless something has changed."""
        if self._touched:
            for node in self._touched:
                self._capacities.put(node, *self._capacity_of(node))
            self._touched.clear()
            for pool, capacity in self._capacities.take_changed():
                self.units.in_pool(pool).set_capacity(capacity)
        for pool in self.units.pools:
            self.units.share_out(pool)

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that have nodes, by name; the default one where there are none."""
        return self._capacities.pools or (DEFAULT_POOL,)

    @property
    def holders(self) -> Collection[AttemptId]:
        """The attempts that hold something on a node."""
        return self._held.keys()

    def pools_of(self, spec: JobSpec) -> tuple[str, ...]:
        """The pools that a job wants, the first one first."""
        return tuple(dict.fromkeys(choice.pool for choice in spec.pools)) if spec.pools else self.pools

    def pool_of(self, job: Job) -> str:
        """The pool in which a job counts: where it is or has claimed seats, else where it waits or would wait."""
        held = self._held.get(job.attempt_id)
        if held is not None:
            return held.pool
        return self._claims_in.get(job.attempt_id) or self._waits_in.get(job.id) or self.pools_of(job.spec)[0]

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
        amounts = amounts_of(job.spec, execution.rank)
        if holds and not held:
            self._hold(job, execution, amounts)
        if leaving != leaves:
            pool = self._held[execution.attempt_id].pool
            self.units.count(job.spec.project, pool, Tally.LEAVING, amounts, 1 if leaves else -1)
        if held and not holds:
            self._release(job, execution, amounts)

    def attempt_changed(self, before: Attempt | None, after: Attempt | None) -> None:
        """Hear of an attempt that claims something, or no longer; it waits in the pool of what it claims."""
        attempt = before if after is None else after
        assert attempt is not None
        claimed, claims = (each is not None and each.claim is not None for each in (before, after))
        if claimed == claims:
            return
        job, sign = self._records.jobs[attempt.job], 1 if claims else -1
        if after is not None and after.claim is not None:
            pool = self._claims_in[attempt.attempt_id] = self._pool_of_node(after.claim.seats[0].node)
        else:
            pool = self._claims_in.pop(attempt.attempt_id)
        amounts = amounts_of_job(job.spec)
        self.units.count(job.spec.project, pool, Tally.CLAIMED, amounts, sign)
        if job.job_class is JobClass.GUARANTEED:
            self.units.count(job.spec.project, pool, Tally.FIXED, amounts, sign)
        if (waits_in := self._waits_in.get(job.id)) is not None:
            self.units.count(job.spec.project, waits_in, Tally.WAITING, amounts, -1)
            self._waits_in[job.id] = pool if claims else self.pools_of(job.spec)[0]
            self.units.count(job.spec.project, self._waits_in[job.id], Tally.WAITING, amounts, 1)

    def job_changed(self, before: Job | None, after: Job | None) -> None:
        """Hear of a job; one that names other pools than before wants something in the first of those."""
        if before is None or after is None or before.spec.pools == after.spec.pools:
            return
        waits_in = self._waits_in.get(after.id)
        if waits_in is not None and after.attempt_id not in self._claims_in:
            pool, amounts = self.pools_of(after.spec)[0], amounts_of_job(after.spec)
            self.units.count(after.spec.project, waits_in, Tally.WAITING, amounts, -1)
            self.units.count(after.spec.project, pool, Tally.WAITING, amounts, 1)
            self._waits_in[after.id] = pool

    # inside

    def _queued(self, job: Job, waited: bool, waits: bool) -> None:
        if waited == waits:
            return
        sign = 1 if waits else -1
        if waits:
            pool = self._waits_in[job.id] = self._claims_in.get(job.attempt_id) or self.pools_of(job.spec)[0]
        else:
            pool = self._waits_in.pop(job.id)
        self.units.count(job.spec.project, pool, Tally.WAITING, amounts_of_job(job.spec), sign)
        self.units.count_jobs(job.spec.project, job.owner, queued=sign)

    def _hold(self, job: Job, execution: Execution, amounts: Amounts) -> None:
        held = self._held.get(execution.attempt_id)
        if held is None:
            held = self._held[execution.attempt_id] = _Held(self._pool_of(execution))
            self.units.count_jobs(job.spec.project, job.owner, running=1)
        held.take()
        self._count_held(job, execution, held.pool, amounts, 1)

    def _release(self, job: Job, execution: Execution, amounts: Amounts) -> None:
        held = self._held[execution.attempt_id]
        self._count_held(job, execution, held.pool, amounts, -1)
        if held.give_back():
            del self._held[execution.attempt_id]
            self.units.count_jobs(job.spec.project, job.owner, running=-1)

    def _count_held(self, job: Job, execution: Execution, pool: str, amounts: Amounts, sign: int) -> None:
        self.units.count(job.spec.project, pool, Tally.HELD, amounts, sign)
        if job.job_class is JobClass.GUARANTEED:
            self.units.count(job.spec.project, pool, Tally.FIXED, amounts, sign)
        node = None if execution.node is None else self._records.nodes.get(execution.node)
        if node is not None and node.cordon is not None:
            self.touch(node.name)

    def _pool_of(self, execution: Execution) -> str:
        attempt = self._records.attempts.get(execution.attempt_id)
        placed_in = "" if attempt is None else attempt.pool
        return placed_in or self._pool_of_node(execution.node)

    def _pool_of_node(self, name: NodeId | None) -> str:
        node = None if name is None else self._records.nodes.get(name)
        return DEFAULT_POOL if node is None else pool_of(node.inventory.labels, self._records.pools.values())

    def _capacity_of(self, name: NodeId) -> tuple[str, Amounts]:
        """What a node adds to its pool: what it has, or while it is cordoned what is held there."""
        node, pool = self._records.nodes.get(name), self._pool_of_node(name)
        if node is None or self._is_lost(name):
            return pool, NO_AMOUNTS
        if node.cordon is not None:
            used = self._used(name)
            sizes = {gpu.uuid: gpu.thousandths for gpu in node.inventory.gpus}
            gpus = sum(sizes.get(gpu, MILLIS_PER_GPU) for gpu in used.gpus)
            gpus += used.thousandths_of_gpus
            return pool, Amounts(gpus, used.cpu_millis, used.memory // BYTES_PER_MIB)
        gpus = sum(gpu.thousandths for gpu in node.inventory.gpus if gpu.usable)
        memory = node.inventory.memory // BYTES_PER_MIB
        return pool, Amounts(gpus, node.inventory.cpus * 1000, memory)


@dataclass(slots=True)
class _Held:
    """What an attempt holds: in which pool, and how many of its executions hold something."""

    pool: str
    _executions: int = 0

    def take(self) -> None:
        """Count one execution more."""
        self._executions += 1

    def give_back(self) -> bool:
        """Count one execution less; whether it was the last one."""
        self._executions -= 1
        return not self._executions


def _is(execution: Execution | None, state: State) -> bool:
    return execution is not None and execution.state is state


def _holds(execution: Execution | None) -> bool:
    return execution is not None and execution.state not in NOT_PLACED and execution.state not in TERMINAL
