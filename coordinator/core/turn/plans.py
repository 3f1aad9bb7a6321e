"""What each node shall run, worked out from the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coordinator.core.causes import EventCause
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.saved.checkpoints import savers
from coordinator.core.records import Execution
from coordinator.core.turn import fencing, idling
from coordinator.core.turn.restoring import for_execution
from coordinator.core.turn.stopping import stop_order
from muster.domain.gangs.fence import Fence
from muster.domain.gangs.plan import Assignment, Desired, Goal, Plan
from muster.domain.ids import AttemptId, ExecutionId, NodeId
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import TERMINAL, State
from muster.domain.jobs.placing.portion import GpuShare


@dataclass(frozen=True, slots=True)
class Seating:
    """Where one execution sits among its gang."""

    local_rank: int
    local_world_size: int
    node_rank: int
    node_count: int
    role_rank: int
    role_size: int


class GangFacts:
    """What concerns whole attempts, worked out once per attempt and turn."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seating: dict[AttemptId, dict[int, Seating]] = {}
        self._fences: dict[tuple[AttemptId, NodeId], Fence] = {}
        self._first: dict[AttemptId, tuple[NodeId, ...]] = {}

    def seating(self, execution: Execution) -> Seating:
        """The seating of an execution that is placed."""
        attempt_id = execution.attempt_id
        if attempt_id not in self._seating:
            members = list(self._cluster.gangs.members(attempt_id))
            self._seating[attempt_id] = _seating(members, self._cluster.jobs[execution.job].spec)
        return self._seating[attempt_id][execution.rank]

    def fence(self, execution: Execution) -> Fence:
        """The fence of an execution that is placed."""
        attempt_id, node = execution.attempt_id, execution.node or NodeId("")
        if attempt_id not in self._first:
            self._first[attempt_id] = fencing.first_nodes(self._cluster, attempt_id)
        if (attempt_id, node) not in self._fences:
            self._fences[(attempt_id, node)] = fencing.fence(self._cluster, attempt_id, self._first[attempt_id], node)
        return self._fences[(attempt_id, node)]


def whole(cluster: Cluster, node: NodeId, facts: GangFacts, cause: EventCause) -> Plan:
    """Everything that a node shall run, and why it is told; what the plan does not list must go."""
    planned = list(cluster.load.planned(node))
    armed = {member.attempt_id for member in planned if Goal.ARM <= goal(cluster, member) < Goal.STOP}
    return Plan(
        revision=cluster.presence[node].next_revision(),
        desired=tuple(
            Desired(
                execution=member.id,
                goal=goal(cluster, member),
                assignment=_assignment(cluster, member, facts),
                stop=stop_order(cluster, member),
                cause=cause.what,
                store_again=_store_again(member),
            )
            for member in planned
        ),
        rosters=tuple(cluster.gangs.roster(attempt_id) for attempt_id in sorted(armed)),
    )


def change(cluster: Cluster, node: NodeId, executions: Mapping[ExecutionId, EventCause], facts: GangFacts) -> Plan:
    """What a node shall do otherwise than in the plan before, and why."""
    base = cluster.presence[node].plan_revision
    listed = [execution for execution in executions if cluster.load.is_planned(node, execution)]
    members = [cluster.executions[execution] for execution in listed]
    goals = {member.id: goal(cluster, member) for member in members}
    armed = {member.attempt_id for member in members if goals[member.id] is Goal.ARM}
    return Plan(
        revision=cluster.presence[node].next_revision(),
        base=base,
        desired=tuple(
            Desired(
                execution=member.id,
                goal=goals[member.id],
                assignment=_assignment(cluster, member, facts) if _is_new(member, goals[member.id]) else None,
                stop=stop_order(cluster, member),
                cause=executions[member.id].what,
                store_again=_store_again(member),
            )
            for member in members
        ),
        rosters=tuple(cluster.gangs.roster(attempt_id) for attempt_id in sorted(armed)),
        removed=tuple(execution for execution in executions if not cluster.load.is_planned(node, execution)),
    )


def _is_new(execution: Execution, goal: Goal) -> bool:
    """Whether its node may know nothing of it."""
    return goal is Goal.PREPARE or execution.stores_again


def _store_again(execution: Execution) -> int:
    return execution.outputs.retries if execution.outputs is not None and execution.stores_again else 0


def goal(cluster: Cluster, execution: Execution) -> Goal:
    """How far an execution shall go: the order of its attempt, unless it is to end or has ended."""
    if execution.state is State.STOPPING or execution.state in TERMINAL:
        return Goal.STOP
    return cluster.attempts[execution.attempt_id].goal or Goal.PREPARE


def _assignment(cluster: Cluster, execution: Execution, facts: GangFacts) -> Assignment:
    job, seating = cluster.jobs[execution.job], facts.seating(execution)
    spec = job.spec
    return Assignment(
        execution=execution.id,
        job=execution.job,
        job_name=spec.name,
        sequence=job.sequence,
        project=spec.project,
        framework=spec.framework,
        dialects=spec.dialects,
        gang_commands=spec.gang_commands or False,
        attempt=execution.attempt,
        rank=execution.rank,
        world_size=spec.size,
        local_rank=seating.local_rank,
        local_world_size=seating.local_world_size,
        node_rank=seating.node_rank,
        node_count=seating.node_count,
        role=spec.role_of(execution.rank),
        role_rank=seating.role_rank,
        role_size=seating.role_size,
        network=spec.network,
        gpus=execution.gpus,
        gpu_share=_gpu_share(cluster, execution, spec.role_of(execution.rank)),
        grace=spec.timeouts.grace,
        fetch=spec.timeouts.fetch,
        stall=spec.timeouts.stall,
        preempt_signal=spec.on_preempt.signal,
        fence=facts.fence(execution),
        interactive=spec.interactive,
        main_program=spec.main_program if execution.rank == 0 else None,
        idle=idling.limit_of(cluster, execution.attempt_id),
        enforce=cluster.attempts[execution.attempt_id].enforce,
        saves=execution.rank in savers(spec),
        restore=for_execution(cluster, execution),
    )


def _gpu_share(cluster: Cluster, execution: Execution, role: Role) -> GpuShare | None:
    """What an execution has of its GPUs; None: they are its own."""
    portion = role.resources.portion
    if portion is None or execution.node is None:
        return None
    node = cluster.nodes.get(execution.node)
    gpus = () if node is None else node.inventory.gpus
    return min((portion.of(gpu.memory) for gpu in gpus if gpu.uuid in execution.gpus), default=None, key=_memory)


def _memory(share: GpuShare) -> int:
    return share.memory


def _seating(members: Sequence[Execution], spec: JobSpec) -> dict[int, Seating]:
    ranks: dict[NodeId, list[int]] = {}
    for member in members:
        if member.node is not None:
            ranks.setdefault(member.node, []).append(member.rank)
    in_role = _places_in_roles(members, spec)
    return {
        rank: Seating(local_rank, len(neighbours), node_rank, len(ranks), *in_role[rank])
        for node_rank, neighbours in enumerate(ranks.values())
        for local_rank, rank in enumerate(neighbours)
    }


def _places_in_roles(members: Sequence[Execution], spec: JobSpec) -> dict[int, tuple[int, int]]:
    """The place of each rank among the executions that its role has in this attempt, and how many these are."""
    roles: dict[str, list[int]] = {}
    for member in members:
        roles.setdefault(spec.role_of(member.rank).name, []).append(member.rank)
    return {rank: (place, len(ranks)) for ranks in roles.values() for place, rank in enumerate(ranks)}
