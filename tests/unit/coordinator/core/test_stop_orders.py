"""Why executions are stopped and how much time they have, as their nodes are told; and what user code has saved."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.events import CordonRequested
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.stopping.notice import StopOrder, StopReason
from muster.domain.jobs.stopping.preemption import OnPreempt, PreemptSignal, preempt_grace
from tests.builders import World, pass_time, report, spec

TIMES = Timeouts(grace=timedelta(seconds=7), preempt=timedelta(minutes=2), run=timedelta(minutes=5))
GANG = spec(2, timeouts=TIMES)
GRACE, LONG = timedelta(seconds=7), timedelta(minutes=2)
USER_FAULT = Failure(kind=FailureKind.EXIT_CODE, message="ended with exit code 1", exit=Exit(code=1))


@pytest.fixture
def world() -> World:
    return World(("a", 8), ("b", 8))


def order(world: World, job: JobId, rank: int = 0) -> StopOrder | None:
    """The stop of the line that its node was sent last."""
    execution = world.rank(job, rank)
    lines = {line.execution: line for line in world.last_plan(world.seat(job, rank)).desired}
    return lines[execution.id].stop


def test_a_job_that_somebody_stops_has_its_grace(world: World) -> None:
    job = world.running(GANG)
    world.stop(job)
    assert order(world, job) == StopOrder(reason=StopReason.STOPPED, grace=GRACE)


def test_the_others_of_a_gang_hear_that_one_has_failed(world: World) -> None:
    job = world.running(GANG)
    world.tell(job, 0, Stage.EXITED, exit=Exit(code=1), failure=USER_FAULT)
    assert order(world, job, 1) == StopOrder(reason=StopReason.FAILED, grace=GRACE)


def test_the_others_of_a_gang_hear_that_those_who_decide_have_ended_well(world: World) -> None:
    job = world.running(replace(GANG, success=SuccessRule.RANK0))
    world.tell(job, 0, Stage.EXITED, exit=Exit(code=0))
    assert order(world, job, 1) == StopOrder(reason=StopReason.FINISHED, grace=GRACE)


def test_a_job_hears_that_its_time_is_over(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 301)
    assert order(world, job) == StopOrder(reason=StopReason.TIME_LIMIT, grace=GRACE)


def test_a_job_that_nobody_uses_hears_so(world: World) -> None:
    job = world.running(replace(GANG, timeouts=Timeouts(grace=GRACE, idle=timedelta(minutes=20))))
    pass_time(world, 21 * 60)
    assert order(world, job) == StopOrder(reason=StopReason.IDLE, grace=GRACE)


def test_a_job_whose_node_is_drained_has_time_to_save(world: World) -> None:
    job = world.running(GANG)
    world.turn(CordonRequested(node=world.seat(job), reason="", restart_jobs=True))
    assert order(world, job) == StopOrder(reason=StopReason.DRAINED, grace=LONG)


def test_a_node_knows_which_signal_a_job_wants(world: World) -> None:
    wanted: JobSpec = replace(GANG, on_preempt=OnPreempt(signal=PreemptSignal.USR1))
    job = world.submit(wanted)
    [line] = [line for line in world.last_plan(world.seat(job)).desired if line.execution == world.rank(job, 0).id]
    assert line.assignment is not None
    assert line.assignment.preempt_signal is PreemptSignal.USR1


def test_a_line_that_is_repeated_after_a_restart_says_the_same(world: World) -> None:
    job = world.running(replace(GANG, roles=spec(1).roles))
    world.stop(job)
    world.restart()
    world.connect(world.seat(job), reports=[report(world.rank(job, 0).id, Stage.RUNNING)])
    assert order(world, job) == StopOrder(reason=StopReason.STOPPED, grace=GRACE)


@pytest.mark.parametrize(
    ("asked", "grace", "has"), [(None, 10, 30), (None, 60, 60), (5, 60, 5), (600, 10, 300), (None, 900, 300)]
)
def test_a_job_that_comes_back_has_half_a_minute_or_what_it_asks_for_within_limits(
    asked: float | None, grace: float, has: float
) -> None:
    wanted = None if asked is None else timedelta(seconds=asked)
    assert preempt_grace(wanted, timedelta(seconds=grace)) == timedelta(seconds=has)


def test_a_checkpoint_is_on_the_record_of_its_attempt(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 60)
    at = world.now - timedelta(seconds=10)
    world.tell(job, 0, Stage.RUNNING, saved_at=at)
    assert world.attempt(job).saved_at == at


def test_a_checkpoint_never_goes_back_and_is_never_later_than_now(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 60)
    world.tell(job, 0, Stage.RUNNING, saved_at=world.now + timedelta(hours=1))
    at = world.attempt(job).saved_at
    world.tell(job, 1, Stage.RUNNING, saved_at=world.now - timedelta(seconds=30))
    assert at is not None
    assert world.attempt(job).saved_at == at <= world.now


def test_the_last_checkpoint_before_an_end_counts(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 60)
    world.tell(job, 0, Stage.EXITED, exit=Exit(code=0), saved_at=world.now)
    assert world.attempt(job).saved_at == world.now


def test_the_next_attempt_has_saved_nothing_yet(world: World) -> None:
    job = world.running(replace(GANG, restarts=RestartPolicy(limit=1)))
    pass_time(world, 60)
    world.tell(job, 0, Stage.RUNNING, saved_at=world.now)
    world.tell(job, 0, Stage.EXITED, exit=Exit(code=1), failure=USER_FAULT)
    world.tell(job, 1, Stage.EXITED, exit=Exit(code=143))
    assert (world.attempt(job).number, world.attempt(job).saved_at) == (2, None)
