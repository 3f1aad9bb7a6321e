"""Plans: written by the coordinator in messages of a moderate size, put together again by the agent."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from google.protobuf.message import DecodeError

from muster.domain.fleet.pool import PortionRule
from muster.domain.gangs.fence import Fence
from muster.domain.gangs.plan import Assignment, Desired, Goal, Plan, Unreadable
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId
from muster.domain.jobs.interactive import MainProgramStreams
from muster.domain.jobs.job import Network, Role, Timeouts
from muster.domain.jobs.stopping.notice import StopOrder, StopReason
from muster.domain.jobs.stopping.preemption import PreemptSignal
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import model_pb2
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.data.checkpoints import to_restore_from_wire, to_restore_to_wire
from muster.wire.gangs.encoded import EncodedOnce
from muster.wire.gangs.fences import fence_from_wire, fence_to_wire
from muster.wire.gangs.rosters import roster_from_bytes, roster_to_bytes
from muster.wire.nodes import gpu_share_from_wire, gpu_share_to_wire
from muster.wire.specs import (
    dialects_from_wire,
    framework_from_wire,
    framework_to_wire,
    interactive_from_wire,
    interactive_to_wire,
    role_from_wire,
    role_to_wire,
)

PART = 4 * 1024 * 1024
"""Bytes of one message of a plan, unless a single role or roster has more."""
MOST_OF_ONE = 48 * 1024 * 1024
"""Bytes of a role or roster that still fits into a message."""

_MAX_REVISION = 2**63 - 1
_ENVELOPE = 64
"""Bytes of a message beside its lists, generously."""
_OF_ONE = 8
"""Bytes of an item of a list beside itself, generously."""
_GOAL_TO_WIRE = {goal: pb.Goal.Value(f"GOAL_{goal.name}") for goal in Goal}
_GOAL_FROM_WIRE = {number: goal for goal, number in _GOAL_TO_WIRE.items()}


_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPart:
    """One message of a plan."""

    message: pb.Plan
    size: int
    """Bytes, about."""


class PlanWriter:
    """Plans as messages; a role or roster that many nodes are sent is encoded once."""

    def __init__(self, part: int = PART, most: int = MOST_OF_ONE) -> None:
        """`part`: bytes of one message; `most`: bytes of one role or roster that can be sent."""
        self._part = part
        self._most = most
        self._roles: EncodedOnce[Role] = EncodedOnce(_role_bytes)
        self._rosters = EncodedOnce(roster_to_bytes)

    def sendable(self, plan: Plan) -> tuple[Plan, Mapping[AttemptId, str]]:
        """The plan without what is too large for any message, and why that is so, by attempt.

        Executions of such an attempt are told to stop, which needs nothing large. None of them is left out, because a
        whole plan clears away what it does not list.
        """
        faults = dict(self._faults(plan))
        if not faults:
            return plan, faults
        rosters = tuple(roster for roster in plan.rosters if roster.attempt_id not in faults)
        desired = tuple(_stopped(line) if _concerns(line, faults) else line for line in plan.desired)
        return replace(plan, rosters=rosters, desired=desired), faults

    def parts(self, plan: Plan) -> Iterator[PlanPart]:
        """The messages of a plan that can be sent, in order; each is made when it is asked for."""
        part, size = _Draft(plan, 0), 0
        for field, piece, length in self._pieces(plan):
            if size and size + length > self._part:
                yield PlanPart(message=part.message(more=True), size=size)
                part, size = _Draft(plan, part.number + 1), 0
            part.add(field, piece)
            size += length + _OF_ONE
        yield PlanPart(message=part.message(more=False), size=size + _ENVELOPE)

    def _faults(self, plan: Plan) -> Iterator[tuple[AttemptId, str]]:
        for roster in plan.rosters:
            if problem := self._fault(self._rosters, roster):
                yield roster.attempt_id, f"the roster of its {len(roster.nodes)} executions {problem}"
        seen: set[tuple[AttemptId, int]] = set()
        for line in plan.desired:
            if line.assignment is None:
                continue
            attempt_id, role = line.assignment.attempt_id, line.assignment.role
            if (attempt_id, id(role)) not in seen:
                seen.add((attempt_id, id(role)))
                if problem := self._fault(self._roles, role):
                    yield attempt_id, f"its role {role.name} {problem}"

    def _fault(self, encoded: EncodedOnce[_Value], value: _Value) -> str:
        try:
            size = len(encoded.of(value))
        except WireError as error:
            return error.problem
        return f"has {size} bytes, and {self._most} fit into a message to its nodes" if size > self._most else ""

    def _pieces(self, plan: Plan) -> Iterator[tuple[str, object, int]]:
        """All items of the lists of a plan with their sizes; a role comes before assignments that refer to it."""
        for roster in plan.rosters:
            data = self._rosters.of(roster)
            yield "rosters", data, len(data)
        keys: dict[int, str] = {}
        for line in plan.desired:
            key = ""
            if line.assignment is not None:
                role = line.assignment.role
                known = keys.get(id(role))
                if known is None:
                    known = keys[id(role)] = str(len(keys))
                    data = self._roles.of(role)
                    yield "roles", pb.PlanRole(key=known, role=data), len(data) + len(known) + _OF_ONE
                key = known
            message = _desired_to_wire(line, key)
            yield "desired", message, message.ByteSize()
        for execution in plan.removed:
            yield "removed", execution, len(execution)


class _Draft:
    """A message of a plan that is being filled."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan = plan
        self.number = number
        self._lists: dict[str, list[object]] = {}

    def add(self, field: str, item: object) -> None:
        """Add an item to one of the lists."""
        self._lists.setdefault(field, []).append(item)

    def message(self, *, more: bool) -> pb.Plan:
        """The message as it is sent."""
        plan = self._plan
        return pb.Plan(revision=plan.revision, base=plan.base, part=self.number, more=more, **self._lists)  # type: ignore[arg-type]  # lists by the names of fields


class PlanReader:
    """The plans of one stream, put together from their messages."""

    def __init__(self) -> None:
        self._parts: list[pb.Plan] = []

    def take(self, message: pb.Plan) -> Plan | None:
        """The plan whose last message this is; None: more messages of it follow.

        What cannot be read of one execution is told in the plan, and concerns nobody else. Raises WireError for a plan
        that cannot be read at all, or lacks a message; none of it counts.
        """
        if message.part == 0:
            self._parts = []
        if message.part != len(self._parts):
            due, self._parts = len(self._parts), []
            raise WireError("Plan.part", f"is {message.part}, and {due} is due: a message of the plan is missing")
        self._parts.append(message)
        if message.more:
            return None
        parts, self._parts = self._parts, []
        unreadable: list[Unreadable] = []

        def keep(line: pb.DesiredExecution, error: WireError) -> None:
            execution = checks.identifier(line.execution, "DesiredExecution.execution")
            goal = _GOAL_FROM_WIRE.get(line.goal, Goal.PREPARE)
            unreadable.append(Unreadable(execution=ExecutionId(execution), goal=goal, reason=str(error)))

        plan = _plan(parts, keep)
        return replace(plan, unreadable=tuple(unreadable)) if unreadable else plan


def plan_to_wire(plan: Plan) -> pb.Plan:
    """The desired executions of a node in one message, however large."""
    (part,) = PlanWriter(part=2**63).parts(plan)
    return part.message


def plan_from_wire(message: pb.Plan) -> Plan:
    """The desired executions of a node from one message; raises WireError."""

    def refuse(_: pb.DesiredExecution, error: WireError) -> None:
        raise error

    if message.more or message.part:
        raise WireError("Plan.part", "is set; this is not the whole of a plan")
    return _plan([message], refuse)


def _plan(parts: Sequence[pb.Plan], fault: Callable[[pb.DesiredExecution, WireError], None]) -> Plan:
    """The plan in these messages; `fault` is told of lines that cannot be read, which are left out."""
    first = parts[0]
    if any((part.revision, part.base) != (first.revision, first.base) for part in parts):
        raise WireError("Plan.revision", "is not the same in all messages of the plan")
    lines = [line for part in parts for line in part.desired]
    checks.unique([line.execution for line in lines], "Plan.desired")
    rosters = tuple(roster_from_bytes(data) for part in parts for data in part.rosters)
    checks.unique([f"{roster.job}-{roster.attempt}" for roster in rosters], "Plan.rosters")
    revision = checks.between(first.revision, 1, _MAX_REVISION, "Plan.revision")
    roles = _roles(role for part in parts for role in part.roles)
    desired: list[Desired] = []
    for line in lines:
        try:
            desired.append(_desired_from_wire(line, roles))
        except WireError as error:
            fault(line, error)
    return Plan(
        revision=revision,
        base=checks.between(first.base, 0, revision - 1, "Plan.base"),
        desired=tuple(desired),
        rosters=rosters,
        removed=tuple(
            ExecutionId(checks.identifier(execution, "Plan.removed")) for part in parts for execution in part.removed
        ),
    )


def _roles(messages: Iterable[pb.PlanRole]) -> Mapping[str, Role | WireError]:
    roles: dict[str, Role | WireError] = {}
    for message in messages:
        if message.key in roles:
            raise WireError("Plan.roles", f"has {message.key[:80]!r} twice")
        try:
            roles[message.key] = role_from_wire(model_pb2.Role.FromString(message.role))
        except DecodeError as error:
            roles[message.key] = WireError("PlanRole.role", f"is no role ({error})")
        except WireError as error:
            roles[message.key] = error
    return roles


def _role_bytes(role: Role) -> bytes:
    return role_to_wire(role).SerializeToString()


def _concerns(line: Desired, faults: Mapping[AttemptId, str]) -> bool:
    return line.assignment is not None and (line.assignment.job, line.assignment.attempt) in faults


def _stopped(line: Desired) -> Desired:
    return Desired(execution=line.execution, goal=Goal.STOP)


def _desired_to_wire(desired: Desired, role_key: str) -> pb.DesiredExecution:
    return pb.DesiredExecution(
        execution=desired.execution,
        goal=_GOAL_TO_WIRE[desired.goal],
        assignment=None if desired.assignment is None else _assignment_to_wire(desired.assignment, role_key),
        reason="" if desired.stop is None else desired.stop.reason,
        grace=None if desired.stop is None else checks.duration(desired.stop.grace),
        cause=desired.cause,
        store_again=desired.store_again,
    )


def _desired_from_wire(line: pb.DesiredExecution, roles: Mapping[str, Role | WireError]) -> Desired:
    goal = _GOAL_FROM_WIRE.get(line.goal)
    if goal is None:
        raise WireError("DesiredExecution.goal", f"is {line.goal}, which is no goal")
    if goal is Goal.PREPARE:
        checks.require(line, "assignment")
    if line.HasField("assignment") and line.assignment.execution != line.execution:
        raise WireError("DesiredExecution.assignment", f"is not the one of {line.execution!r}")
    return Desired(
        execution=ExecutionId(checks.identifier(line.execution, "DesiredExecution.execution")),
        goal=goal,
        assignment=_assignment_from_wire(line.assignment, roles) if line.HasField("assignment") else None,
        stop=_stop_from_wire(line) if line.reason else None,
        cause=line.cause[: checks.MAX_TEXT],
        store_again=checks.between(line.store_again, 0, checks.MAX_COUNT, "DesiredExecution.store_again"),
    )


def _stop_from_wire(line: pb.DesiredExecution) -> StopOrder:
    checks.require(line, "grace")
    return StopOrder(
        reason=checks.word(StopReason, line.reason, "DesiredExecution.reason"),
        grace=checks.span(line.grace, "DesiredExecution.grace"),
    )


def _assignment_to_wire(assignment: Assignment, role_key: str) -> pb.Assignment:
    return pb.Assignment(
        execution=assignment.execution,
        job=assignment.job,
        job_name=assignment.job_name,
        sequence=assignment.sequence,
        project=assignment.project,
        framework=framework_to_wire(assignment.framework),
        dialects=assignment.dialects,
        gang_commands=assignment.gang_commands,
        attempt=assignment.attempt,
        rank=assignment.rank,
        world_size=assignment.world_size,
        local_rank=assignment.local_rank,
        local_world_size=assignment.local_world_size,
        node_rank=assignment.node_rank,
        node_count=assignment.node_count,
        role_key=role_key,
        role_rank=assignment.role_rank,
        role_size=assignment.role_size,
        network=assignment.network,
        gpus=assignment.gpus,
        gpu_share=None if assignment.gpu_share is None else gpu_share_to_wire(assignment.gpu_share),
        grace=checks.duration(assignment.grace),
        fetch=checks.duration(assignment.fetch) if assignment.role.fetches else None,
        stall=checks.duration(assignment.stall) if assignment.role.fetches else None,
        preempt_signal=assignment.preempt_signal,
        fence=fence_to_wire(assignment.fence),
        interactive=interactive_to_wire(assignment.interactive),
        main_program=assignment.main_program or "",
        idle=checks.duration(assignment.idle),
        saves=assignment.saves,
        restore=None if assignment.restore is None else to_restore_to_wire(assignment.restore),
        enforce=assignment.enforce if assignment.enforce is not PortionRule.TELL else "",
    )


def _assignment_from_wire(sent: pb.Assignment, roles: Mapping[str, Role | WireError]) -> Assignment:
    checks.require(sent, "grace")
    role = roles.get(sent.role_key)
    if role is None:
        raise WireError("Assignment.role_key", f"is {sent.role_key[:80]!r}, and the plan has no such role")
    if isinstance(role, WireError):
        raise role
    world_size = checks.between(sent.world_size, 1, checks.MAX_SIZE, "Assignment.world_size")
    local_world_size = checks.between(sent.local_world_size, 1, world_size, "Assignment.local_world_size")
    node_count = checks.between(sent.node_count, 1, world_size, "Assignment.node_count")
    role_size = checks.between(sent.role_size or 1, 1, world_size, "Assignment.role_size")
    return Assignment(
        execution=ExecutionId(checks.identifier(sent.execution, "Assignment.execution")),
        job=JobId(checks.identifier(sent.job, "Assignment.job")),
        job_name=checks.label(sent.job_name, "Assignment.job_name"),
        sequence=checks.between(sent.sequence, 1, _MAX_REVISION, "Assignment.sequence"),
        project=checks.label(sent.project, "Assignment.project"),
        framework=framework_from_wire(sent.framework) if sent.HasField("framework") else None,
        dialects=dialects_from_wire(sent.dialects, "Assignment.dialects"),
        gang_commands=sent.gang_commands,
        attempt=checks.between(sent.attempt, 1, checks.MAX_COUNT, "Assignment.attempt"),
        rank=checks.between(sent.rank, 0, world_size - 1, "Assignment.rank"),
        world_size=world_size,
        local_rank=checks.between(sent.local_rank, 0, local_world_size - 1, "Assignment.local_rank"),
        local_world_size=local_world_size,
        node_rank=checks.between(sent.node_rank, 0, node_count - 1, "Assignment.node_rank"),
        node_count=node_count,
        role=role,
        role_rank=checks.between(sent.role_rank, 0, role_size - 1, "Assignment.role_rank"),
        role_size=role_size,
        network=checks.word(Network, sent.network, "Assignment.network"),
        gpus=tuple(GpuUuid(uuid) for uuid in sent.gpus),
        gpu_share=gpu_share_from_wire(sent.gpu_share) if sent.HasField("gpu_share") else None,
        grace=checks.span(sent.grace, "Assignment.grace"),
        fetch=checks.span(sent.fetch, "Assignment.fetch") if sent.HasField("fetch") else Timeouts().fetch,
        stall=checks.span(sent.stall, "Assignment.stall") if sent.HasField("stall") else Timeouts().stall,
        preempt_signal=checks.word(PreemptSignal, sent.preempt_signal, "Assignment.preempt_signal"),
        fence=fence_from_wire(sent.fence) if sent.HasField("fence") else Fence(),
        interactive=interactive_from_wire(sent.interactive) if sent.HasField("interactive") else None,
        main_program=checks.word(MainProgramStreams, sent.main_program, "Assignment.main_program")
        if sent.main_program
        else None,
        idle=checks.span(sent.idle, "Assignment.idle") if sent.HasField("idle") else None,
        saves=sent.saves,
        restore=to_restore_from_wire(sent.restore) if sent.HasField("restore") else None,
        enforce=checks.word(PortionRule, sent.enforce, "Assignment.enforce") if sent.enforce else PortionRule.TELL,
    )
