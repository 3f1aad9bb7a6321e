"""Values of jobs.proto: what clients see of jobs."""

from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.queueing.change import JobChange
from muster.domain.jobs.queueing.used_preset import UsedPreset
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView, LogLine, Transition
from muster.rpc.v1 import jobs_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.data.images import found_image_from_wire, found_image_to_wire
from muster.wire.data.outputs import execution_outputs_from_wire, execution_outputs_to_wire
from muster.wire.explanations import wait_reason_from_wire, wait_reason_to_wire
from muster.wire.model import (
    exit_from_wire,
    exit_to_wire,
    failure_from_wire,
    failure_to_wire,
    port_lease_from_wire,
    port_lease_to_wire,
)
from muster.wire.placing import pool_choice_from_wire, pool_choice_to_wire
from muster.wire.specs import (
    job_spec_from_wire,
    job_spec_to_wire,
)

_STREAMS = ("stdout", "stderr")


def job_to_wire(job: JobView) -> pb.Job:
    """A job as a client sees it."""
    return pb.Job(
        id=job.id,
        spec=job_spec_to_wire(job.spec),
        phase=job.phase,
        summary=job.summary,
        submitted_at=checks.timestamp(job.submitted_at),
        owner=job.owner,
        sequence=job.sequence,
        started_at=checks.timestamp(job.started_at),
        ended_at=checks.timestamp(job.ended_at),
        attempts=map(attempt_to_wire, job.attempts),
        states={str(state): count for state, count in job.states.items()},
        failure=None if job.failure is None else failure_to_wire(job.failure),
        reasons=map(wait_reason_to_wire, job.reasons),
        images=map(found_image_to_wire, job.images),
        presets=map(_used_preset_to_wire, job.presets),
        origins=job.origins,
    )


def job_from_wire(message: pb.Job) -> JobView:
    """A job as a client sees it; raises WireError."""
    checks.require(message, "spec", "submitted_at")
    return JobView(
        id=JobId(checks.identifier(message.id, "Job.id") if message.id else ""),
        spec=job_spec_from_wire(message.spec),
        phase=checks.word(JobPhase, message.phase, "Job.phase"),
        summary=message.summary,
        submitted_at=checks.moment(message.submitted_at, "Job.submitted_at"),
        owner=message.owner,
        sequence=message.sequence,
        started_at=checks.optional_moment(message, "started_at"),
        ended_at=checks.optional_moment(message, "ended_at"),
        attempts=tuple(attempt_from_wire(attempt) for attempt in message.attempts),
        states={checks.word(State, state, "Job.states"): count for state, count in message.states.items()},
        failure=failure_from_wire(message.failure) if message.HasField("failure") else None,
        reasons=tuple(map(wait_reason_from_wire, message.reasons)),
        images=tuple(map(found_image_from_wire, message.images)),
        presets=tuple(map(_used_preset_from_wire, message.presets)),
        origins=dict(message.origins),
    )


def _used_preset_to_wire(used: UsedPreset) -> pb.UsedPreset:
    return pb.UsedPreset(project=used.project, kind=used.kind, name=used.name, version=used.version)


def _used_preset_from_wire(message: pb.UsedPreset) -> UsedPreset:
    return UsedPreset(
        project=checks.text(message.project, "UsedPreset.project"),
        kind=checks.text(message.kind, "UsedPreset.kind"),
        name=checks.text(message.name, "UsedPreset.name"),
        version=message.version,
    )


def job_change_to_wire(change: JobChange) -> pb.ChangeRequest:
    """A request for a job to be changed, to which its name is still to be added."""
    return pb.ChangeRequest(
        priority=change.priority,
        run=checks.duration(change.run),
        queue=checks.duration(change.queue),
        expected=checks.duration(change.expected),
        not_before=checks.timestamp(change.not_before),
        job_class=change.job_class or "",
        pools=None if change.pools is None else pb.PoolChoices(pools=map(pool_choice_to_wire, change.pools)),
    )


def job_change_from_wire(message: pb.ChangeRequest) -> JobChange:
    """What is to be changed of a job; raises WireError."""
    return JobChange(
        priority=message.priority if message.HasField("priority") else None,
        run=checks.optional_span(message, "run"),
        queue=checks.optional_span(message, "queue"),
        expected=checks.optional_span(message, "expected"),
        not_before=checks.optional_moment(message, "not_before"),
        job_class=checks.word(JobClass, message.job_class, "ChangeRequest.job_class") if message.job_class else None,
        pools=tuple(map(pool_choice_from_wire, message.pools.pools)) if message.HasField("pools") else None,
    )


def attempt_to_wire(attempt: AttemptView) -> pb.Attempt:
    """One start of the whole gang."""
    return pb.Attempt(
        number=attempt.number,
        placed_at=checks.timestamp(attempt.placed_at),
        checked_in_at=checks.timestamp(attempt.checked_in_at),
        released_at=checks.timestamp(attempt.released_at),
        started_at=checks.timestamp(attempt.started_at),
        saved_at=checks.timestamp(attempt.saved_at),
        ended_at=checks.timestamp(attempt.ended_at),
        failure=None if attempt.failure is None else failure_to_wire(attempt.failure),
        executions=map(execution_to_wire, attempt.executions),
        executions_dropped=attempt.executions_dropped,
    )


def attempt_from_wire(message: pb.Attempt) -> AttemptView:
    """One start of the whole gang; raises WireError."""
    return AttemptView(
        number=checks.between(message.number, 1, checks.MAX_COUNT, "Attempt.number"),
        placed_at=checks.optional_moment(message, "placed_at"),
        checked_in_at=checks.optional_moment(message, "checked_in_at"),
        released_at=checks.optional_moment(message, "released_at"),
        started_at=checks.optional_moment(message, "started_at"),
        saved_at=checks.optional_moment(message, "saved_at"),
        ended_at=checks.optional_moment(message, "ended_at"),
        failure=failure_from_wire(message.failure) if message.HasField("failure") else None,
        executions=tuple(execution_from_wire(execution) for execution in message.executions),
        executions_dropped=message.executions_dropped,
    )


def execution_to_wire(execution: ExecutionView) -> pb.Execution:
    """One worker of an attempt."""
    return pb.Execution(
        id=execution.id,
        rank=execution.rank,
        role=execution.role,
        node=execution.node or "",
        gpus=execution.gpus,
        state=execution.state,
        detail=execution.detail,
        address=execution.address or "",
        ports=map(port_lease_to_wire, execution.ports),
        failure=None if execution.failure is None else failure_to_wire(execution.failure),
        exit=None if execution.exit is None else exit_to_wire(execution.exit),
        transitions=[pb.Transition(state=t.state, at=checks.timestamp(t.at)) for t in execution.transitions],
        log_complete=execution.log_complete,
        outputs=None if execution.outputs is None else execution_outputs_to_wire(execution.outputs),
    )


def execution_from_wire(message: pb.Execution) -> ExecutionView:
    """One worker of an attempt; raises WireError."""
    return ExecutionView(
        id=ExecutionId(checks.identifier(message.id, "Execution.id")),
        rank=checks.between(message.rank, 0, checks.MAX_SIZE - 1, "Execution.rank"),
        role=checks.label(message.role, "Execution.role"),
        state=checks.word(State, message.state, "Execution.state"),
        node=NodeId(checks.identifier(message.node, "Execution.node")) if message.node else None,
        gpus=tuple(GpuUuid(uuid) for uuid in message.gpus),
        detail=message.detail,
        address=checks.address(message.address, "Execution.address") if message.address else None,
        ports=tuple(port_lease_from_wire(lease) for lease in message.ports),
        failure=failure_from_wire(message.failure) if message.HasField("failure") else None,
        exit=exit_from_wire(message.exit) if message.HasField("exit") else None,
        transitions=tuple(_transition(transition) for transition in message.transitions),
        log_complete=message.log_complete,
        outputs=execution_outputs_from_wire(message.outputs) if message.HasField("outputs") else None,
    )


def log_line_to_wire(line: LogLine) -> pb.LogLine:
    """A piece of output of one rank."""
    return pb.LogLine(
        rank=line.rank,
        stream=line.stream,
        time=checks.timestamp(line.time),
        text=line.text,
        partial=line.partial,
        attempt=line.attempt,
    )


def log_line_from_wire(message: pb.LogLine) -> LogLine:
    """A piece of output of one rank; raises WireError."""
    checks.require(message, "time")
    if message.stream not in _STREAMS:
        raise WireError("LogLine.stream", f"is {message.stream!r}; known are {', '.join(_STREAMS)}")
    return LogLine(
        rank=checks.between(message.rank, 0, checks.MAX_SIZE - 1, "LogLine.rank"),
        stream=message.stream,
        time=checks.moment(message.time, "LogLine.time"),
        text=message.text,
        partial=message.partial,
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "LogLine.attempt"),
    )


def _transition(message: pb.Transition) -> Transition:
    checks.require(message, "at")
    return Transition(
        state=checks.word(State, message.state, "Transition.state"),
        at=checks.moment(message.at, "Transition.at"),
    )
