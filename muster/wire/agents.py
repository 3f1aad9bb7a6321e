"""Values of agents.proto: plans down, reports up."""

from collections.abc import Callable

from muster.domain.disconnect import OnDisconnect
from muster.domain.fence import Fence, Witness
from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.job import Network
from muster.domain.plan import Assignment, Desired, Goal, Plan, Report, Stage
from muster.domain.roster import Roster
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.model import (
    exit_from_wire,
    exit_to_wire,
    failure_from_wire,
    failure_to_wire,
    port_lease_from_wire,
    port_lease_to_wire,
)
from muster.wire.rosters import roster_from_bytes, roster_to_bytes
from muster.wire.specs import (
    role_from_wire,
    role_to_wire,
)

_MAX_REVISION = 2**63 - 1
_GOAL_TO_WIRE = {goal: pb.Goal.Value(f"GOAL_{goal.name}") for goal in Goal}
_GOAL_FROM_WIRE = {number: goal for goal, number in _GOAL_TO_WIRE.items()}
_STAGE_TO_WIRE = {stage: pb.Stage.Value(f"STAGE_{stage.name}") for stage in Stage}
_STAGE_FROM_WIRE = {number: stage for stage, number in _STAGE_TO_WIRE.items()}


def plan_to_wire(plan: Plan, roster: Callable[[Roster], bytes] = roster_to_bytes) -> pb.Plan:
    """The desired executions of a node; `roster` writes its rosters."""
    return pb.Plan(
        revision=plan.revision,
        base=plan.base,
        desired=map(desired_to_wire, plan.desired),
        rosters=map(roster, plan.rosters),
        removed=plan.removed,
    )


def plan_from_wire(message: pb.Plan) -> Plan:
    """The desired executions of a node; raises WireError."""
    checks.unique([line.execution for line in message.desired], "Plan.desired")
    rosters = tuple(map(roster_from_bytes, message.rosters))
    checks.unique([f"{roster.job}-{roster.attempt}" for roster in rosters], "Plan.rosters")
    revision = checks.between(message.revision, 1, _MAX_REVISION, "Plan.revision")
    return Plan(
        revision=revision,
        base=checks.between(message.base, 0, revision - 1, "Plan.base"),
        desired=tuple(desired_from_wire(line) for line in message.desired),
        rosters=rosters,
        removed=tuple(ExecutionId(checks.identifier(execution, "Plan.removed")) for execution in message.removed),
    )


def desired_to_wire(desired: Desired) -> pb.DesiredExecution:
    """One line of a plan."""
    return pb.DesiredExecution(
        execution=desired.execution,
        goal=_GOAL_TO_WIRE[desired.goal],
        assignment=None if desired.assignment is None else assignment_to_wire(desired.assignment),
    )


def desired_from_wire(message: pb.DesiredExecution) -> Desired:
    """One line of a plan; raises WireError."""
    goal = _GOAL_FROM_WIRE.get(message.goal)
    if goal is None:
        raise WireError("DesiredExecution.goal", f"is {message.goal}, which is no goal")
    if goal is Goal.PREPARE:
        checks.require(message, "assignment")
    if message.HasField("assignment") and message.assignment.execution != message.execution:
        raise WireError("DesiredExecution.assignment", f"is not the one of {message.execution!r}")
    return Desired(
        execution=ExecutionId(checks.identifier(message.execution, "DesiredExecution.execution")),
        goal=goal,
        assignment=assignment_from_wire(message.assignment) if message.HasField("assignment") else None,
    )


def assignment_to_wire(assignment: Assignment) -> pb.Assignment:
    """Everything that an agent needs to prepare an execution."""
    return pb.Assignment(
        execution=assignment.execution,
        job=assignment.job,
        job_name=assignment.job_name,
        attempt=assignment.attempt,
        rank=assignment.rank,
        world_size=assignment.world_size,
        local_rank=assignment.local_rank,
        local_world_size=assignment.local_world_size,
        node_rank=assignment.node_rank,
        node_count=assignment.node_count,
        role=role_to_wire(assignment.role),
        network=assignment.network,
        gpus=assignment.gpus,
        grace=checks.duration(assignment.grace),
        fence=_fence_to_wire(assignment.fence),
    )


def assignment_from_wire(message: pb.Assignment) -> Assignment:
    """Everything that an agent needs to prepare an execution; raises WireError."""
    checks.require(message, "role", "grace")
    world_size = checks.between(message.world_size, 1, checks.MAX_SIZE, "Assignment.world_size")
    local_world_size = checks.between(message.local_world_size, 1, world_size, "Assignment.local_world_size")
    node_count = checks.between(message.node_count, 1, world_size, "Assignment.node_count")
    return Assignment(
        execution=ExecutionId(checks.identifier(message.execution, "Assignment.execution")),
        job=JobId(checks.identifier(message.job, "Assignment.job")),
        job_name=checks.label(message.job_name, "Assignment.job_name"),
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "Assignment.attempt"),
        rank=checks.between(message.rank, 0, world_size - 1, "Assignment.rank"),
        world_size=world_size,
        local_rank=checks.between(message.local_rank, 0, local_world_size - 1, "Assignment.local_rank"),
        local_world_size=local_world_size,
        node_rank=checks.between(message.node_rank, 0, node_count - 1, "Assignment.node_rank"),
        node_count=node_count,
        role=role_from_wire(message.role),
        network=checks.word(Network, message.network, "Assignment.network"),
        gpus=tuple(GpuUuid(uuid) for uuid in message.gpus),
        grace=checks.span(message.grace, "Assignment.grace"),
        fence=_fence_from_wire(message.fence) if message.HasField("fence") else Fence(),
    )


def _fence_to_wire(fence: Fence) -> pb.Fence:
    return pb.Fence(
        lost_after=checks.duration(fence.lost_after),
        on_disconnect=fence.on_disconnect,
        key=fence.key,
        witnesses=[pb.Witness(node=witness.node, address=witness.address) for witness in fence.witnesses],
    )


def _fence_from_wire(message: pb.Fence) -> Fence:
    checks.require(message, "lost_after")
    return Fence(
        lost_after=checks.span(message.lost_after, "Fence.lost_after"),
        on_disconnect=checks.word(OnDisconnect, message.on_disconnect, "Fence.on_disconnect"),
        key=message.key,
        witnesses=tuple(
            Witness(node=NodeId(checks.identifier(witness.node, "Witness.node")), address=witness.address)
            for witness in message.witnesses
        ),
    )


def report_to_wire(report: Report) -> pb.ExecutionReport:
    """What an agent says about one execution."""
    return pb.ExecutionReport(
        execution=report.execution,
        stage=_STAGE_TO_WIRE[report.stage],
        at=checks.timestamp(report.at),
        detail=report.detail,
        address=report.address or "",
        ports=map(port_lease_to_wire, report.ports),
        started_at=checks.timestamp(report.started_at),
        exit=None if report.exit is None else exit_to_wire(report.exit),
        failure=None if report.failure is None else failure_to_wire(report.failure),
        log_complete=report.log_complete,
        no_permit_for=checks.duration(report.no_permit_for),
    )


def report_from_wire(message: pb.ExecutionReport) -> Report:
    """What an agent says about one execution; raises WireError."""
    stage = _STAGE_FROM_WIRE.get(message.stage)
    if stage is None:
        raise WireError("ExecutionReport.stage", f"is {message.stage}, which is no stage")
    checks.require(message, "at")
    _check_says_how(message, stage)
    checks.few(message.ports, "ExecutionReport.ports")
    checks.unique([lease.name for lease in message.ports], "ExecutionReport.ports")
    return Report(
        execution=ExecutionId(checks.identifier(message.execution, "ExecutionReport.execution")),
        stage=stage,
        at=checks.moment(message.at, "ExecutionReport.at"),
        detail=checks.message(message.detail),
        address=checks.address(message.address, "ExecutionReport.address") if message.address else None,
        ports=tuple(port_lease_from_wire(lease) for lease in message.ports),
        started_at=checks.optional_moment(message, "started_at"),
        exit=exit_from_wire(message.exit) if message.HasField("exit") else None,
        failure=failure_from_wire(message.failure) if message.HasField("failure") else None,
        log_complete=message.log_complete,
        no_permit_for=checks.span(message.no_permit_for, "ExecutionReport.no_permit_for")
        if message.HasField("no_permit_for")
        else None,
    )


def _check_says_how(message: pb.ExecutionReport, stage: Stage) -> None:
    """The coordinator acts on these without looking whether they are there."""
    if stage is Stage.EXITED:
        checks.require(message, "exit")
    if stage is Stage.FAILED:
        checks.require(message, "failure")
    if stage is Stage.PREPARED and not message.address:
        raise WireError("ExecutionReport.address", "is empty; a prepared execution has one")
