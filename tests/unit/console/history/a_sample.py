"""A sample, with as much in it as a test cares for."""

from datetime import UTC, datetime, timedelta

from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, Sample

BEGIN = datetime(2026, 11, 27, 9, tzinfo=UTC)
RANK = ExecutionId("j7k2-1-0")
GPU = GpuUuid("GPU-1")


def at(seconds: float) -> datetime:
    """A time, from nine o'clock on."""
    return BEGIN + timedelta(seconds=seconds)


def sample(
    seconds: float,
    *,
    span: float = 10,
    cpus: float = 1,
    gpu: GpuUse | None = None,
    execution: ExecutionUse | None = None,
) -> Sample:
    """A sample of a node that ends so many seconds after nine."""
    return Sample(
        at=at(seconds),
        span=timedelta(seconds=span),
        host=HostUse(cpus=cpus, memory=1 << 30, memory_total=8 << 30),
        gpus=() if gpu is None else ((GPU, gpu),),
        executions=() if execution is None else ((RANK, execution),),
    )
