"""Several samples are one: means weighted by time, the greatest where a mean would hide it, nothing made up."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from console.telemetry.history.rolling import MOST_ROLLED_EXECUTIONS, rolled
from muster.domain.ids import ExecutionId
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, Sample
from tests.unit.console.history.a_sample import GPU, RANK, at, sample

MINUTE = timedelta(minutes=1)


def test_samples_that_end_within_one_span_are_one_at_its_end() -> None:
    found = rolled([sample(70), sample(10), sample(60), sample(120)], MINUTE)
    assert [(each.at, each.span) for each in found] == [
        (at(60), timedelta(seconds=20)),
        (at(120), timedelta(seconds=20)),
    ]


def test_a_mean_counts_a_sample_by_the_time_of_which_it_tells() -> None:
    [one] = rolled([sample(10, span=10, cpus=4), sample(40, span=30, cpus=0)], MINUTE)
    assert one.host.cpus == 1


def test_peaks_are_kept_beside_means() -> None:
    calm = GpuUse(busy=0.2, busy_most=0.4, memory=5, watts=100, celsius=50, clock_mhz=1000)
    wild = GpuUse(busy=0.4, busy_most=1.0, memory=9, watts=300, celsius=80, clock_mhz=2000, throttled=True)
    uses = ExecutionUse(cpus=1, cpus_most=2, memory=3, read_rate=4, write_rate=5, processes=6)
    [one] = rolled([sample(10, gpu=calm, execution=uses), sample(20, gpu=wild, execution=ExecutionUse(cpus=3))], MINUTE)

    [(gpu, seen)] = one.gpus
    assert gpu == GPU
    assert seen.busy is not None
    assert round(seen.busy, 6) == 0.3
    assert (seen.busy_most, seen.memory, seen.watts, seen.celsius, seen.clock_mhz, seen.throttled) == (
        (1.0, 9, 200, 80, 1500, True)
    )
    assert one.executions == (
        (RANK, ExecutionUse(cpus=2, cpus_most=3, memory=3, read_rate=4, write_rate=5, processes=6)),
    )


def test_what_nobody_tells_stays_absent() -> None:
    [one] = rolled([sample(10, gpu=GpuUse(), execution=ExecutionUse()), sample(20)], MINUTE)
    assert one.gpus == ((GPU, GpuUse()),)
    assert one.executions == ((RANK, ExecutionUse()),)
    assert one.host == HostUse(cpus=1, memory=1 << 30, memory_total=8 << 30)


def test_of_very_many_executions_the_last_ones_are_kept_and_the_others_counted() -> None:
    many = [
        Sample(at=at(10 * n), span=MINUTE, host=HostUse(), executions=((ExecutionId(f"j{n}-1-0"), ExecutionUse()),))
        for n in range(1, MOST_ROLLED_EXECUTIONS + 4)
    ]
    [one] = rolled(many, timedelta(days=1))
    assert len(one.executions) == MOST_ROLLED_EXECUTIONS
    assert one.executions[-1][0] == f"j{MOST_ROLLED_EXECUTIONS + 3}-1-0"
    assert one.left_out == 3


@given(
    st.lists(st.tuples(st.integers(1, 3600), st.floats(0, 100)), min_size=1, max_size=40, unique_by=lambda row: row[0])
)
def test_it_makes_no_difference_in_how_many_steps_samples_are_joined(told: list[tuple[int, float]]) -> None:
    samples = [sample(seconds, cpus=cpus) for seconds, cpus in told]
    hour = timedelta(hours=1)
    [at_once], [in_steps] = rolled(samples, hour), rolled(rolled(samples, timedelta(minutes=5)), hour)
    assert (at_once.at, at_once.span) == (in_steps.at, in_steps.span)
    assert abs(at_once.host.cpus - in_steps.host.cpus) < 1e-9
