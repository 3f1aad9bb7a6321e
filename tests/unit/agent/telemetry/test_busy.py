"""Busy time of executions, added up from looks at their GPUs."""

import pytest

from agent.telemetry.busy import BUSY_TOLD_EVERY, BusyTime, GpuHolder
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.sample import GpuUse

ME, OTHER = ExecutionId("me"), ExecutionId("other")
A, B = GpuUuid("a"), GpuUuid("b")


def uses(**busy: float | None) -> dict[GpuUuid, GpuUse]:
    return {GpuUuid(gpu): GpuUse(busy=each) for gpu, each in busy.items()}


@pytest.fixture
def time() -> BusyTime:
    return BusyTime()


def test_what_is_seen_counts_for_the_time_since_the_look_before(time: BusyTime) -> None:
    mine = GpuHolder(ME, (A, B))
    time.look(uses(a=1.0, b=1.0), [mine], 10.0)
    time.look(uses(a=1.0, b=0.5), [mine], 12.0)
    time.look(uses(a=0.0, b=0.25), [mine], 14.0)
    assert time.of(ME) == 2000 * 1.5 + 2000 * 0.25


def test_gpus_that_do_not_tell_leave_it_unknown_and_not_zero(time: BusyTime) -> None:
    mig, half_told = GpuHolder(ME, (A,)), GpuHolder(OTHER, (A, B))
    for seconds in (0.0, 2.0):
        time.look(uses(a=None, b=1.0), [mig, half_told], seconds)
    assert time.of(ME) is None
    assert time.of(OTHER) is None
    assert time.of(ExecutionId("unknown")) is None


def test_idle_gpus_that_tell_were_busy_for_no_time(time: BusyTime) -> None:
    time.look(uses(a=0.0), [GpuHolder(ME, (A,))], 0.0)
    time.look(uses(a=0.0), [GpuHolder(ME, (A,))], 2.0)
    assert time.of(ME) == 0


def test_time_in_which_a_gpu_did_not_tell_counts_for_nothing(time: BusyTime) -> None:
    mine = GpuHolder(ME, (A,))
    for seconds, busy in ((0.0, 1.0), (2.0, None), (4.0, 1.0)):
        time.look(uses(a=busy), [mine], seconds)
    assert time.of(ME) == 2000


def test_whoever_has_a_portion_has_that_part_of_the_time(time: BusyTime) -> None:
    sharers = [GpuHolder(ME, (A,), 250), GpuHolder(OTHER, (A,), 500)]
    time.look(uses(a=1.0), sharers, 0.0)
    time.look(uses(a=1.0), sharers, 4.0)
    assert (time.of(ME), time.of(OTHER)) == (1000, 2000)


def test_it_is_told_every_few_minutes(time: BusyTime) -> None:
    mine = GpuHolder(ME, (A,))
    told = [time.look(uses(a=1.0), [mine], seconds) for seconds in (0.0, 200.0, BUSY_TOLD_EVERY, 400.0)]
    assert told == [[], [], [(ME, int(BUSY_TOLD_EVERY) * 1000)], []]


def test_what_a_former_agent_counted_goes_on(time: BusyTime) -> None:
    time.look(uses(a=1.0), [GpuHolder(ME, (A,), before=5000)], 0.0)
    assert time.of(ME) == 5000
    time.look(uses(a=1.0), [GpuHolder(ME, (A,), before=5000)], 1.0)
    assert time.of(ME) == 6000


def test_whoever_runs_no_more_is_forgotten(time: BusyTime) -> None:
    time.look(uses(a=1.0), [GpuHolder(ME, (A,))], 0.0)
    time.look(uses(a=1.0), [], 2.0)
    assert time.of(ME) is None
