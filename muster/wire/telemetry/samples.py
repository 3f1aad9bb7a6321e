"""Values of telemetry.proto: what a node used in one span, in columns."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from google.protobuf.message import DecodeError

from muster.domain.ids import ExecutionId, GpuUuid, NodeId
from muster.domain.telemetry.sample import (
    MAX_SAMPLE,
    MAX_SAMPLED,
    ExecutionUse,
    GpuUse,
    HostUse,
    NodeSample,
    Sample,
    UnreadSample,
)
from muster.rpc.v1 import telemetry_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError

Named = TypeVar("Named")

NOT_TOLD = 0xFFFFFFFF
_MOST = NOT_TOLD - 1
_MIB, _KIB = 1 << 20, 1 << 10
_HOST_COLUMNS = 10


def sample_to_wire(sample: Sample) -> pb.Telemetry:
    """What a node used in one span."""
    gpus, executions = [use for _, use in sample.gpus], [use for _, use in sample.executions]
    host = sample.host
    return pb.Telemetry(
        at_ms=round(sample.at.timestamp() * 1000),
        span_ms=min(_MOST, round(sample.span.total_seconds() * 1000)),
        gpu=[gpu for gpu, _ in sample.gpus],
        gpu_busy=_column((use.busy for use in gpus), 1000),
        gpu_busy_most=_column((use.busy_most for use in gpus), 1000),
        gpu_memory_mib=_column((use.memory for use in gpus), 1 / _MIB),
        gpu_watts=_column(use.watts for use in gpus),
        gpu_celsius=_column(use.celsius for use in gpus),
        gpu_clock_mhz=_column(use.clock_mhz for use in gpus),
        gpu_throttled=[int(use.throttled) for use in gpus] if any(use.throttled for use in gpus) else (),
        execution=[execution for execution, _ in sample.executions],
        cpu=_column((use.cpus for use in executions), 1000),
        cpu_most=_column((use.cpus_most for use in executions), 1000),
        memory_mib=_column((use.memory for use in executions), 1 / _MIB),
        read_kib=_column((use.read_rate for use in executions), 1 / _KIB),
        write_kib=_column((use.write_rate for use in executions), 1 / _KIB),
        processes=_column(use.processes for use in executions),
        left_out=sample.left_out,
        host=(
            *_cells((host.cpus,), 1000),
            *_cells((host.memory, host.memory_total), 1 / _MIB),
            *_cells((host.read_rate, host.write_rate, host.receive_rate, host.send_rate), 1 / _KIB),
            *_cells(host.stalled, 1000),
        ),
    )


def sample_from_wire(message: pb.Telemetry) -> Sample:
    """What a node used in one span; raises WireError."""
    _require_sound(message)
    cpus, memory, memory_total, read, write, receive, send, *stalled = message.host
    return Sample(
        at=_moment(message.at_ms),
        span=timedelta(milliseconds=message.span_ms),
        host=HostUse(
            cpus=_part(cpus) or 0.0,
            memory=_whole(memory, _MIB) or 0,
            memory_total=_whole(memory_total, _MIB) or 0,
            read_rate=_number(read, _KIB),
            write_rate=_number(write, _KIB),
            receive_rate=_number(receive, _KIB),
            send_rate=_number(send, _KIB),
            stalled=(_part(stalled[0]), _part(stalled[1]), _part(stalled[2])),
        ),
        gpus=_rows(message.gpu, _gpus(message), GpuUuid),
        executions=_rows(message.execution, _executions(message), ExecutionId),
        left_out=message.left_out,
    )


def node_sample_to_wire(found: NodeSample) -> pb.NodeTelemetry:
    """The sample of a node."""
    return pb.NodeTelemetry(node=found.node, telemetry=sample_to_wire(found.sample))


def node_sample_from_wire(message: pb.NodeTelemetry) -> NodeSample:
    """The sample of a node; raises WireError."""
    checks.require(message, "telemetry")
    return NodeSample(
        NodeId(checks.identifier(message.node, "NodeTelemetry.node")), sample_from_wire(message.telemetry)
    )


def unread_sample_to_wire(found: UnreadSample) -> pb.NodeTelemetry:
    """The sample of a node as it came, of which `executions_of_sample` has told that it can be read."""
    return pb.NodeTelemetry(node=found.node, telemetry=pb.Telemetry.FromString(found.data))


def sample_from_bytes(data: bytes) -> Sample:
    """A sample as it came with a heartbeat; raises WireError, whatever the bytes are."""
    return sample_from_wire(_message(data))


def executions_of_sample(data: bytes) -> Sequence[ExecutionId]:
    """The executions of a sample as it came; raises WireError where it cannot be read, as `sample_from_bytes` does.

    It takes a tenth of the time, as no number is looked at: there is none that is wrong.
    """
    message = _message(data)
    _require_sound(message)
    return [ExecutionId(name) for name in message.execution]


def _message(data: bytes) -> pb.Telemetry:
    if len(data) > MAX_SAMPLE:
        raise WireError("Heartbeat.telemetry", f"has {len(data)} bytes; {MAX_SAMPLE} are the most")
    try:
        return pb.Telemetry.FromString(data)
    except DecodeError as error:
        raise WireError("Heartbeat.telemetry", f"is no Telemetry: {error}") from None


def _require_sound(message: pb.Telemetry) -> None:
    """Refuse a message that is no sample; all that can be wrong with one is looked for here."""
    if len(message.host) != _HOST_COLUMNS:
        raise WireError("Telemetry.host", f"has {len(message.host)} numbers; {_HOST_COLUMNS} are told")
    _moment(message.at_ms)
    for names, where in ((message.gpu, "Telemetry.gpu"), (message.execution, "Telemetry.execution")):
        if len(names) > MAX_SAMPLED:
            raise WireError(where, f"has {len(names)} entries; {MAX_SAMPLED} are the most")
        checks.unique(names, where)
        for name in names:
            checks.identifier(name, where)


def _gpus(message: pb.Telemetry) -> Callable[[int], GpuUse]:
    def use(row: int) -> GpuUse:
        return GpuUse(
            busy=_part(_cell(message.gpu_busy, row)),
            busy_most=_part(_cell(message.gpu_busy_most, row)),
            memory=_whole(_cell(message.gpu_memory_mib, row), _MIB),
            watts=_number(_cell(message.gpu_watts, row), 1.0),
            celsius=_whole(_cell(message.gpu_celsius, row), 1),
            clock_mhz=_whole(_cell(message.gpu_clock_mhz, row), 1),
            throttled=_cell(message.gpu_throttled, row) == 1,
        )

    return use


def _executions(message: pb.Telemetry) -> Callable[[int], ExecutionUse]:
    def use(row: int) -> ExecutionUse:
        return ExecutionUse(
            cpus=_part(_cell(message.cpu, row)),
            cpus_most=_part(_cell(message.cpu_most, row)),
            memory=_whole(_cell(message.memory_mib, row), _MIB),
            read_rate=_number(_cell(message.read_kib, row), _KIB),
            write_rate=_number(_cell(message.write_kib, row), _KIB),
            processes=_whole(_cell(message.processes, row), 1),
        )

    return use


Use = TypeVar("Use")


def _rows(
    names: Sequence[str], use: Callable[[int], Use], kind: Callable[[str], Named]
) -> tuple[tuple[Named, Use], ...]:
    return tuple((kind(name), use(row)) for row, name in enumerate(names))


def _column(values: Iterable[float | None], unit: float = 1.0) -> Sequence[int]:
    """A column; an empty one where nobody tells."""
    cells = _cells(values, unit)
    return () if all(cell == NOT_TOLD for cell in cells) else cells


def _cells(values: Iterable[float | None], unit: float) -> list[int]:
    return [NOT_TOLD if value is None else min(_MOST, max(0, round(value * unit))) for value in values]


def _cell(column: Sequence[int], row: int) -> int:
    return column[row] if row < len(column) else NOT_TOLD


def _number(cell: int, unit: float) -> float | None:
    return None if cell == NOT_TOLD else cell * unit


def _part(cell: int) -> float | None:
    """A number that travels in thousandths."""
    return None if cell == NOT_TOLD else cell / 1000


def _whole(cell: int, unit: int) -> int | None:
    return None if cell == NOT_TOLD else cell * unit


def _moment(milliseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        raise WireError("Telemetry.at_ms", f"{milliseconds} is no time") from None
