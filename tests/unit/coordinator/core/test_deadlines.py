"""Limits in time: the check-in deadline and the run time."""

from datetime import timedelta

from muster.domain.gangs.plan import Goal, Stage
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.builders import AT, World, limits, spec

TRIO = spec(3, gpus=1, timeouts=limits(check_in=60))


def world() -> World:
    return World(("a", 1), ("b", 1), ("c", 1))


def keep_alive(w: World, seconds: int) -> None:
    """Time passes and the agents say that they are alive."""
    for _ in range(seconds // 10):
        w.advance(10)
        for node in w.cluster.nodes:
            w.heartbeat(node)


def test_the_deadline_counts_from_placement() -> None:
    w = world()
    first = w.submit(TRIO)
    second = w.submit(TRIO)
    w.advance(20)
    w.stop(first)
    w.tell_all(first, Stage.STOPPED)

    assert w.attempt(second).deadline == AT + timedelta(seconds=80)


def test_the_deadline_does_not_slide() -> None:
    w = world()
    job = w.submit(TRIO)
    for second in range(5):
        keep_alive(w, 10)
        w.tell_all(job, Stage.PREPARING, detail=f"pulling image {second} %")
    assert w.phase(job) is JobPhase.PREPARING

    keep_alive(w, 10)

    assert w.phase(job) is JobPhase.STOPPING


def test_who_is_missing_is_named_with_node_and_what_it_was_doing() -> None:
    w = world()
    job = w.submit(TRIO)
    w.tell(job, 0, Stage.PREPARED)
    w.tell(job, 1, Stage.PREPARING, detail="pulling image 41 %")
    keep_alive(w, 60)

    failure = w.attempt(job).failure
    assert failure is not None
    assert failure.kind is FailureKind.CHECK_IN_TIMEOUT
    assert str(failure) == (
        "2 of 3 executions had not checked in after 60 s: rank 1 on b (pulling image 41 %); rank 2 on c (placed)"
    )


def test_who_is_missing_because_its_node_is_away_is_said_to_be() -> None:
    w = world()
    job = w.submit(TRIO)
    w.tell_all(job, Stage.PREPARING)
    w.tell(job, 0, Stage.PREPARED)
    w.tell(job, 1, Stage.PREPARED)
    keep_alive(w, 30)
    w.disconnect("c")
    w.advance(10)
    w.heartbeat("a")
    w.advance(20)

    failure = w.attempt(job).failure
    assert failure is not None
    assert str(failure) == (
        "rank 2 on c: had not checked in after 60 s (preparing; its node is unreachable), as the only one of 3"
    )


def test_the_deadline_counts_until_all_are_armed() -> None:
    w = world()
    job = w.submit(TRIO)
    w.tell_all(job, Stage.PREPARED)
    w.tell(job, 0, Stage.ARMED)
    w.tell(job, 2, Stage.ARMED)
    keep_alive(w, 60)

    failure = w.attempt(job).failure
    assert failure is not None
    assert str(failure) == "rank 1 on b: had not armed after 60 s (checked in), as the only one of 3"


def test_executions_that_missed_the_deadline_hold_their_gpus_until_their_agents_confirm_the_end() -> None:
    w = world()
    job = w.submit(TRIO)
    w.tell(job, 0, Stage.PREPARED)
    keep_alive(w, 60)
    assert w.states(job) == [State.STOPPING] * 3
    assert [w.cluster.load.used(node).gpus for node in w.cluster.nodes] == [{"GPU-a-0"}, {"GPU-b-0"}, {"GPU-c-0"}]

    w.tell_all(job, Stage.STOPPED)

    assert w.states(job) == [State.STOPPED, State.FAILED, State.FAILED]
    assert w.phase(job) is JobPhase.FAILED


def test_each_missing_execution_keeps_its_own_part_of_the_blame() -> None:
    w = world()
    job = w.submit(TRIO)
    w.tell(job, 0, Stage.PREPARED)
    w.tell(job, 1, Stage.PREPARING, detail="pulling image 41 %")
    keep_alive(w, 60)
    w.tell_all(job, Stage.STOPPED)

    assert [str(w.rank(job, rank).failure) for rank in range(3)] == [
        "None",
        "rank 1 on b: had not checked in after 60 s (pulling image 41 %)",
        "rank 2 on c: had not checked in after 60 s (placed)",
    ]


def test_a_job_that_was_released_in_time_is_left_alone() -> None:
    w = world()
    job = w.running(TRIO)
    keep_alive(w, 120)

    assert w.phase(job) is JobPhase.RUNNING


def test_a_job_that_waits_in_the_queue_has_no_deadline() -> None:
    w = world()
    w.running(TRIO)
    second = w.submit(TRIO)
    keep_alive(w, 120)

    assert w.phase(second) is JobPhase.QUEUED
    assert w.attempt(second).deadline is None


def test_a_gang_of_which_nothing_is_missing_any_more_is_ended_by_the_deadline_all_the_same() -> None:
    w = world()
    job = w.submit(TRIO)
    w.tell_all(job, Stage.PREPARED)
    w.tell(job, 0, Stage.EXITED)
    w.tell(job, 1, Stage.ARMED)
    w.tell(job, 2, Stage.ARMED)
    keep_alive(w, 60)
    w.tell_all(job, Stage.STOPPED)

    assert w.phase(job).ended


def test_a_deadline_is_kept_over_a_restart_of_the_coordinator() -> None:
    w = world()
    job = w.submit(TRIO)
    w.advance(20)
    w.restart()
    for node in "abc":
        w.connect(node)
    keep_alive(w, 30)
    assert w.phase(job) is JobPhase.PREPARING

    keep_alive(w, 10)

    assert w.phase(job) is JobPhase.STOPPING


def test_code_that_runs_longer_than_it_may_is_stopped_and_has_failed() -> None:
    w = world()
    job = w.submit(spec(3, gpus=1, timeouts=limits(run=120)))
    keep_alive(w, 50)
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    keep_alive(w, 110)
    assert w.phase(job) is JobPhase.RUNNING

    keep_alive(w, 10)

    failure = w.attempt(job).failure
    assert failure is not None
    assert (failure.kind, failure.message) == (
        FailureKind.TIME_LIMIT,
        "still ran after 120 s, the job's limit (timeouts.run)",
    )
    w.tell_all(job, Stage.EXITED)
    assert w.phase(job) is JobPhase.FAILED


def test_code_that_is_stopped_for_its_run_time_holds_its_gpus_until_it_has_exited() -> None:
    w = world()
    job = w.running(spec(3, gpus=1, timeouts=limits(run=60)))
    waiting = w.submit(TRIO)
    keep_alive(w, 60)
    assert w.states(job) == [State.STOPPING] * 3
    assert w.phase(waiting) is JobPhase.QUEUED

    w.tell_all(job, Stage.EXITED)

    assert w.states(job) == [State.FAILED] * 3
    assert w.phase(waiting) is JobPhase.PREPARING


def test_those_that_had_exited_well_before_the_limit_stay_so() -> None:
    w = world()
    job = w.running(spec(3, gpus=1, timeouts=limits(run=60)))
    w.tell(job, 1, Stage.EXITED)
    keep_alive(w, 60)
    w.tell(job, 0, Stage.EXITED)
    w.tell(job, 2, Stage.EXITED)

    assert w.states(job) == [State.FAILED, State.SUCCEEDED, State.FAILED]


def test_the_limit_on_run_time_is_kept_over_a_restart_of_the_coordinator() -> None:
    w = world()
    job = w.running(spec(3, gpus=1, timeouts=limits(run=60)))
    w.advance(10)
    w.restart()
    w.advance(50)

    assert w.attempt(job).goal is Goal.STOP
