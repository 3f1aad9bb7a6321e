"""Looks of a span as one sample: rates, means, and the greatest."""

from datetime import UTC, datetime, timedelta

from agent.telemetry.cgroups import CgroupCounts
from agent.telemetry.folding import Look, fold
from agent.telemetry.host import HostCounts
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.sample import MAX_SAMPLED, ExecutionUse, GpuUse

AT = datetime(2026, 11, 26, 9, 30, tzinfo=UTC)
GPU, OTHER = GpuUuid("GPU-0"), GpuUuid("GPU-1")
JOB, LATE = ExecutionId("j7k2-1-0"), ExecutionId("j7k2-1-1")


def host(cpu_busy: float = 0, **counts: int) -> HostCounts:
    return HostCounts(cpu_busy=cpu_busy, memory_used=5, memory_total=10, **counts)  # type: ignore[arg-type]  # counts are numbers


def test_counts_become_rates() -> None:
    looks = [
        Look(seconds=100, host=host(50, read_bytes=1000, sent_bytes=10)),
        Look(seconds=104, host=host(59, read_bytes=9000, sent_bytes=10)),
        Look(seconds=110, host=host(70, read_bytes=11_000, sent_bytes=510)),
    ]

    sample = fold(looks, AT)

    assert (sample.at, sample.span) == (AT, timedelta(seconds=10))
    assert (sample.host.cpus, sample.host.memory, sample.host.memory_total) == (2.0, 5, 10)
    assert (sample.host.read_rate, sample.host.send_rate, sample.host.write_rate) == (1000.0, 50.0, None)


def test_what_a_gpu_did_is_the_mean_of_the_looks_and_the_greatest_beside() -> None:
    busy = (0.9, 0.2, 0.4, 0.6)  # the first is of the span before
    looks = [
        Look(
            seconds=number, host=host(), gpus={GPU: GpuUse(busy=each, watts=100 * each, memory=number, celsius=number)}
        )
        for number, each in enumerate(busy)
    ]
    looks[2].gpus[GPU] = GpuUse(busy=0.4, watts=40, throttled=True)  # type: ignore[index]  # a dictionary

    [(gpu, use)] = fold(looks, AT).gpus

    assert gpu == GPU
    assert (round(use.busy or 0, 3), use.busy_most, round(use.watts or 0, 3)) == (0.4, 0.6, 40.0)
    assert (use.memory, use.celsius, use.throttled) == (3, 3, True)


def test_a_gpu_that_does_not_tell_is_not_known_and_one_that_is_gone_is_not_there() -> None:
    looks = [
        Look(seconds=0, host=host(), gpus={GPU: GpuUse(), OTHER: GpuUse(busy=1)}),
        Look(seconds=2, host=host(), gpus={GPU: GpuUse()}),
    ]

    assert fold(looks, AT).gpus == ((GPU, GpuUse()),)


def test_an_execution_counts_from_when_it_was_seen_first() -> None:
    def counts(cpu_seconds: float) -> CgroupCounts:
        return CgroupCounts(cpu_seconds=cpu_seconds, memory=7, read_bytes=0, processes=3)

    looks = [
        Look(seconds=0, host=host(), executions={JOB: counts(0)}),
        Look(seconds=2, host=host(), executions={JOB: counts(8), LATE: counts(1)}),
        Look(seconds=4, host=host(), executions={JOB: counts(8), LATE: counts(2)}),
    ]

    assert dict(fold(looks, AT).executions) == {
        JOB: ExecutionUse(cpus=2.0, cpus_most=4.0, memory=7, read_rate=0.0, processes=3),
        LATE: ExecutionUse(cpus=0.5, cpus_most=0.5, memory=7, read_rate=0.0, processes=3),
    }


def test_an_execution_that_was_seen_once_has_no_rates_yet() -> None:
    looks = [
        Look(seconds=0, host=host()),
        Look(seconds=2, host=host(), executions={JOB: CgroupCounts(cpu_seconds=1, memory=7)}),
    ]

    assert dict(fold(looks, AT).executions) == {JOB: ExecutionUse(memory=7)}


def test_a_count_that_began_anew_gives_no_rate() -> None:
    looks = [
        Look(seconds=0, host=host(read_bytes=500), executions={JOB: CgroupCounts(cpu_seconds=9)}),
        Look(seconds=2, host=host(read_bytes=100), executions={JOB: CgroupCounts(cpu_seconds=1)}),
    ]

    sample = fold(looks, AT)

    assert sample.host.read_rate is None
    assert dict(sample.executions) == {JOB: ExecutionUse()}


def test_of_too_many_executions_some_are_left_out_and_counted() -> None:
    many = {ExecutionId(f"j-1-{rank:05}"): CgroupCounts() for rank in range(MAX_SAMPLED + 3)}
    looks = [Look(seconds=0, host=host()), Look(seconds=2, host=host(), executions=many)]

    sample = fold(looks, AT)

    assert (len(sample.executions), sample.left_out) == (MAX_SAMPLED, 3)
