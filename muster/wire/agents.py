"""Values of agents.proto that agents send: reports of executions."""

from functools import lru_cache

from muster.domain.gangs.plan import MOST_BUSY, Report, Stage
from muster.domain.ids import ExecutionId
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.data.checkpoints import told_checkpoints_from_wire, told_checkpoints_to_wire
from muster.wire.data.outputs import execution_outputs_from_wire, execution_outputs_to_wire
from muster.wire.model import (
    exit_from_wire,
    exit_to_wire,
    failure_from_wire,
    failure_to_wire,
    port_lease_from_wire,
    port_lease_to_wire,
)

_STAGE_TO_WIRE = {stage: pb.Stage.Value(f"STAGE_{stage.name}") for stage in Stage}
_STAGE_FROM_WIRE = {number: stage for stage, number in _STAGE_TO_WIRE.items()}

MOST_FEATURES = 64
"""Words by which one agent says what it can."""
LONGEST_FEATURE = 64
"""Characters of such a word."""


@lru_cache(maxsize=100)  # nearly all agents say the same, which is kept once
def features_from_wire(words: tuple[str, ...]) -> frozenset[str]:
    """Words of a Hello for what the agent can; raises WireError."""
    checks.between(len(words), 0, MOST_FEATURES, "Hello.features")
    if any(not word or len(word) > LONGEST_FEATURE for word in words):
        raise WireError("Hello.features", f"has a word that is empty or longer than {LONGEST_FEATURE} characters")
    return frozenset(checks.plain(word, "Hello.features") for word in words)


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
        used_at=checks.timestamp(report.used_at),
        saved_at=checks.timestamp(report.saved_at),
        gpu_busy_ms=report.gpu_busy_ms,
        outputs=None if report.outputs is None else execution_outputs_to_wire(report.outputs),
        over_portion=report.over_portion,
        checkpoints=None if report.checkpoints is None else told_checkpoints_to_wire(report.checkpoints),
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
        used_at=checks.optional_moment(message, "used_at"),
        saved_at=checks.optional_moment(message, "saved_at"),
        gpu_busy_ms=_busy(message),
        outputs=execution_outputs_from_wire(message.outputs) if message.HasField("outputs") else None,
        over_portion=checks.message(message.over_portion),
        checkpoints=told_checkpoints_from_wire(message.checkpoints) if message.HasField("checkpoints") else None,
    )


def _busy(message: pb.ExecutionReport) -> int | None:
    if not message.HasField("gpu_busy_ms"):
        return None
    checks.between(message.gpu_busy_ms, 0, MOST_BUSY, "ExecutionReport.gpu_busy_ms")
    return message.gpu_busy_ms


def _check_says_how(message: pb.ExecutionReport, stage: Stage) -> None:
    """The coordinator acts on these without looking whether they are there."""
    if stage is Stage.EXITED:
        checks.require(message, "exit")
    if stage is Stage.FAILED:
        checks.require(message, "failure")
    if stage is Stage.PREPARED and not message.address:
        raise WireError("ExecutionReport.address", "is empty; a prepared execution has one")
