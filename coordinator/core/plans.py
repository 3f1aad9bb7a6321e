"""What each node shall run, worked out from the records."""

from collections.abc import Iterable

from coordinator.core.cluster import AttemptKey, Cluster
from coordinator.core.records import Execution
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.lifecycle import TERMINAL, State
from muster.domain.plan import Assignment, Desired, Goal, Plan
from muster.domain.roster import Member, Roster


class Layouts:
    """How the members of attempts lie on nodes; worked out once per attempt and turn."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[AttemptKey, dict[NodeId, list[int]]] = {}

    def of(self, attempt: AttemptKey) -> dict[NodeId, list[int]]:
        """Node → its ranks, in rank order."""
        if attempt not in self._nodes:
            nodes: dict[NodeId, list[int]] = {}
            for member in self._cluster.members(attempt):
                if member.node is not None:
                    nodes.setdefault(member.node, []).append(member.rank)
            self._nodes[attempt] = nodes
        return self._nodes[attempt]


def whole(cluster: Cluster, node: NodeId, layouts: Layouts) -> Plan:
    """Everything that a node shall run; what it does not list must go."""
    planned = list(cluster.planned(node))
    armed = {_attempt_of(member) for member in planned if Goal.ARM <= goal(cluster, member) < Goal.STOP}
    return Plan(
        revision=_next_revision(cluster, node),
        desired=tuple(
            Desired(execution=member.id, goal=goal(cluster, member), assignment=_assignment(cluster, member, layouts))
            for member in planned
        ),
        rosters=tuple(roster(cluster, key) for key in sorted(armed)),
    )


def change(cluster: Cluster, node: NodeId, executions: Iterable[ExecutionId], layouts: Layouts) -> Plan:
    """What a node shall do otherwise than in the plan before."""
    base = cluster.presence[node].plan_revision
    listed = [execution for execution in executions if cluster.is_planned(node, execution)]
    members = [cluster.executions[execution] for execution in listed]
    goals = {member.id: goal(cluster, member) for member in members}
    armed = {_attempt_of(member) for member in members if goals[member.id] is Goal.ARM}
    return Plan(
        revision=_next_revision(cluster, node),
        base=base,
        desired=tuple(
            Desired(
                execution=member.id,
                goal=goals[member.id],
                assignment=_assignment(cluster, member, layouts) if goals[member.id] is Goal.PREPARE else None,
            )
            for member in members
        ),
        rosters=tuple(roster(cluster, key) for key in sorted(armed)),
        removed=tuple(execution for execution in executions if not cluster.is_planned(node, execution)),
    )


def goal(cluster: Cluster, execution: Execution) -> Goal:
    """How far an execution shall go: the order of its attempt, unless it is to end or has ended."""
    if execution.state is State.STOPPING or execution.state in TERMINAL:
        return Goal.STOP
    return cluster.attempts[_attempt_of(execution)].goal or Goal.PREPARE


def roster(cluster: Cluster, attempt: AttemptKey) -> Roster:
    """The members of an attempt that has checked in."""
    job = cluster.jobs[attempt[0]]
    return Roster(
        job=job.id,
        job_name=job.spec.name,
        attempt=attempt[1],
        network=job.spec.network,
        members=tuple(
            Member(
                rank=member.rank,
                execution=member.id,
                role=job.spec.role_of(member.rank).name,
                node=member.node or NodeId(""),
                address=member.address or "",
                checked_in_at=member.times[State.CHECKED_IN],
                ports=member.ports,
                gpus=member.gpus,
            )
            for member in cluster.members(attempt)
        ),
    )


def _assignment(cluster: Cluster, execution: Execution, layouts: Layouts) -> Assignment:
    spec, layout = cluster.jobs[execution.job].spec, layouts.of(_attempt_of(execution))
    assert execution.node is not None
    neighbours = layout[execution.node]
    return Assignment(
        execution=execution.id,
        job=execution.job,
        job_name=spec.name,
        attempt=execution.attempt,
        rank=execution.rank,
        world_size=spec.size,
        local_rank=neighbours.index(execution.rank),
        local_world_size=len(neighbours),
        node_rank=list(layout).index(execution.node),
        node_count=len(layout),
        role=spec.role_of(execution.rank),
        network=spec.network,
        gpus=execution.gpus,
        grace=spec.timeouts.grace,
    )


def _next_revision(cluster: Cluster, node: NodeId) -> int:
    presence = cluster.presence[node]
    presence.plan_revision += 1
    return presence.plan_revision


def _attempt_of(execution: Execution) -> AttemptKey:
    return (execution.job, execution.attempt)
