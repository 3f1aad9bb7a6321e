"""How long an attempt may be in the queue, and how long a job is kept after its end."""

from datetime import timedelta

from coordinator.core.events import StopRequested
from coordinator.core.requests.jobs import FORGOTTEN_AT_ONCE
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.job import Timeouts
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, pass_time, spec
from tests.unit.coordinator.core.orders import HOUR, hold, resume, suspend, unhold

PAUSE = timedelta(minutes=5)
"""The longest one before an attempt."""


def test_a_job_that_finds_no_room_in_time_fails_and_is_not_started_again() -> None:
    w = World()
    wanted = spec(2, timeouts=Timeouts(queue=2 * HOUR), restarts=RestartPolicy(limit=3))
    job = w.submit(wanted, queue_anyway=True)

    w.advance(7199)
    assert w.phase(job) is JobPhase.QUEUED
    w.advance(1)

    assert w.phase(job) is JobPhase.FAILED
    assert w.states(job) == [State.FAILED, State.FAILED]
    failure = w.attempt(job).failure
    assert failure is not None
    assert failure.kind is FailureKind.QUEUE_TIMEOUT
    assert str(failure) == "found no room in 2h, as long as it may be in the queue (timeouts.queue)"
    assert w.cluster.jobs[job].gave_up == "it was in the queue for as long as it may be"


def test_what_a_job_waits_outside_does_not_count_as_time_in_the_queue() -> None:
    w = World()
    job = w.submit(spec(1, timeouts=Timeouts(queue=HOUR)), queue_anyway=True)
    w.advance(1800)
    hold(w, job)
    w.advance(100_000)
    unhold(w, job)
    w.advance(1799)
    assert w.phase(job) is JobPhase.QUEUED
    w.advance(1)
    assert w.phase(job) is JobPhase.FAILED


def between_pauses(w: World, queue: timedelta) -> JobId:
    """A job on the only GPU that has failed twice, so that it begins in five minutes at the earliest."""
    wanted = spec(1, 1, timeouts=Timeouts(queue=queue), restarts=RestartPolicy(limit=3, backoff=HOUR))
    job = w.running(wanted)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=3), log_complete=True)
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=3), log_complete=True)
    assert w.attempt(job).not_before == w.now + PAUSE
    return job


def test_a_pause_before_a_restart_does_not_count_as_time_in_the_queue() -> None:
    w = World(("a", 1))
    job = between_pauses(w, timedelta(seconds=60))
    w.running(spec(1, 1))  # it takes the GPU meanwhile

    w.advance(300 + 59)
    assert w.phase(job) is JobPhase.QUEUED
    w.advance(1)

    assert w.phase(job) is JobPhase.FAILED
    failure = w.attempt(job).failure
    assert failure is not None
    assert failure.kind is FailureKind.QUEUE_TIMEOUT


def test_a_restart_of_the_coordinator_in_a_pause_gives_no_time_in_the_queue_and_takes_none() -> None:
    w = World(("a", 1))
    job = between_pauses(w, timedelta(seconds=160))
    w.running(spec(1, 1))
    w.advance(200)
    w.restart()

    w.advance(100 + 159)
    assert w.phase(job) is JobPhase.QUEUED
    w.advance(1)
    assert w.phase(job) is JobPhase.FAILED


def test_a_job_that_is_held_in_a_pause_has_all_its_time_in_the_queue_left() -> None:
    w = World(("a", 1))
    job = between_pauses(w, HOUR)
    w.advance(200)
    hold(w, job)
    assert w.attempt(job).queued_for == timedelta()


def test_each_attempt_has_its_own_time_in_the_queue() -> None:
    w = World(("a", 1))
    other = w.running(spec(1, 1))
    job = w.submit(spec(1, 1, timeouts=Timeouts(queue=HOUR)))
    w.tell(other, 0, Stage.EXITED, log_complete=True)
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    suspend(w, job)
    w.tell(job, 0, Stage.STOPPED)
    resume(w, job)
    assert w.attempt(job).queued_for == timedelta()


def test_a_restart_gives_back_no_more_than_a_part_of_the_time_in_the_queue() -> None:
    w = World()
    job = w.submit(spec(1, timeouts=Timeouts(queue=16 * HOUR)), queue_anyway=True)
    w.advance(15.5 * 3600)
    w.now += timedelta(days=900)  # somebody has set the clock while the coordinator was away
    w.restart()

    w.advance(3599)
    assert w.phase(job) is JobPhase.QUEUED
    w.advance(1)
    assert w.phase(job) is JobPhase.FAILED


def test_holding_and_releasing_often_leaves_one_look_at_the_time_in_the_queue() -> None:
    w = World()
    job = w.submit(spec(1, timeouts=Timeouts(queue=HOUR)), queue_anyway=True)
    for _ in range(5):
        hold(w, job)
        w.advance(1)
        unhold(w, job)
    w.advance(3599)
    assert w.phase(job) is JobPhase.QUEUED
    w.advance(1)
    assert w.phase(job) is JobPhase.FAILED
    assert w.cluster.deadlines.next_at is None, "looks at former stays have come to nothing"


def test_a_job_is_forgotten_some_time_after_its_end() -> None:
    w = World(("a", 1))
    job = w.running(spec(1, 1, delete_after=HOUR))
    w.tell(job, 0, Stage.EXITED, log_complete=True)
    pass_time(w, 3590)
    assert job in w.cluster.jobs
    w.restart()
    w.connect("a")
    pass_time(w, 20)
    assert job not in w.cluster.jobs


def test_of_very_many_jobs_only_some_are_forgotten_at_a_time() -> None:
    w = World()
    jobs = [w.submit(spec(1, delete_after=HOUR), queue_anyway=True) for _ in range(FORGOTTEN_AT_ONCE + 5)]
    w.turn(*(StopRequested(job=job) for job in jobs))
    left = []
    w.advance(3599)
    for _ in range(2):
        w.advance(1)
        left.append(len(w.cluster.jobs))
    assert left == [5, 0]
