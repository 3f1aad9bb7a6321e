"""What is plotted of ranks, GPUs and nodes, out of their samples."""

from datetime import UTC, datetime, timedelta

from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.quantities import Quantity, amounts_of_gpu, amounts_of_node, amounts_of_rank
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, Sample

MINE, OTHER = ExecutionId("j7k2-1-0"), ExecutionId("b3xx-1-0")
FIRST, SECOND, THIRD = GpuUuid("G1"), GpuUuid("G2"), GpuUuid("G3")
SAMPLE = Sample(
    at=datetime(2026, 11, 27, 9, tzinfo=UTC),
    span=timedelta(seconds=10),
    host=HostUse(cpus=8, memory=100, memory_total=200, send_rate=5),
    gpus=(
        (FIRST, GpuUse(busy=0.5, memory=10, watts=300, celsius=60, clock_mhz=1000)),
        (SECOND, GpuUse(busy=1.0, memory=30, watts=500, celsius=80, clock_mhz=2000)),
        (THIRD, GpuUse(memory=7)),
    ),
    executions=((MINE, ExecutionUse(cpus=2, memory=40, processes=3)), (OTHER, ExecutionUse(cpus=5))),
)


def test_a_rank_has_its_own_use_and_that_of_its_gpus_alone() -> None:
    assert amounts_of_rank(SAMPLE, MINE, {FIRST, SECOND}) == {
        Quantity.BUSY: 0.75,
        Quantity.GPU_MEMORY: 40,
        Quantity.WATTS: 800,
        Quantity.CELSIUS: 80,
        Quantity.CLOCK_MHZ: 1500,
        Quantity.CPUS: 2,
        Quantity.MEMORY: 40,
        Quantity.PROCESSES: 3,
    }
    assert amounts_of_rank(SAMPLE, OTHER, ()) == {Quantity.CPUS: 5}


def test_of_a_rank_that_no_longer_runs_nothing_is_told_whoever_has_its_gpus_now() -> None:
    assert amounts_of_rank(SAMPLE, ExecutionId("gone-1-0"), {FIRST}) == {}


def test_what_nobody_tells_is_left_out_and_is_not_nothing() -> None:
    assert amounts_of_gpu(SAMPLE, THIRD) == {Quantity.GPU_MEMORY: 7}
    assert amounts_of_gpu(SAMPLE, GpuUuid("none")) == {}


def test_a_node_has_its_own_use_and_that_of_all_its_gpus() -> None:
    amounts = amounts_of_node(SAMPLE)
    assert (amounts[Quantity.CPUS], amounts[Quantity.MEMORY], amounts[Quantity.SEND_RATE]) == (8, 100, 5)
    assert (amounts[Quantity.GPU_MEMORY], amounts[Quantity.WATTS]) == (47, 800)
    assert Quantity.READ_RATE not in amounts
