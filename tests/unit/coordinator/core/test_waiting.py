"""Jobs that wait outside the queue: held, suspended, or before their time."""

from datetime import timedelta

import pytest

from coordinator.core.answers import RefusalCause, Refused
from coordinator.core.events import HoldRequested
from coordinator.core.limits import Limits
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.job import Timeouts
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.stopping.notice import StopOrder, StopReason
from tests.builders import AT, World, pass_time, spec
from tests.unit.coordinator.core.orders import HOUR, hold, refusal, resume, suspend, unhold

# holds


def test_a_job_that_is_submitted_on_hold_waits_though_there_is_room_and_runs_when_it_is_released() -> None:
    w = World(("a", 8))
    job = w.submit(spec(2, 4, hold=True), owner="bob")

    assert w.phase(job) is JobPhase.WAITING
    assert w.cluster.jobs[job].holds == (WaitReason(kind=WaitKind.USER, by="bob", since=AT),)
    assert w.cluster.queue.position(job) == 0

    unhold(w, job)

    assert w.phase(job) is JobPhase.PREPARING
    assert w.states(job) == [State.PLACED, State.PLACED]


def test_a_queued_job_that_is_held_lets_those_behind_it_pass() -> None:
    w = World(("a", 4))
    w.running(spec(1, 2))
    large, small = w.submit(spec(1, 4)), w.submit(spec(1, 2))
    assert (w.phase(large), w.phase(small)) == (JobPhase.QUEUED, JobPhase.QUEUED), "what is free is kept for the large"

    hold(w, large)

    assert (w.phase(large), w.phase(small)) == (JobPhase.WAITING, JobPhase.PREPARING)
    assert w.cluster.load.reservation is None


def test_a_released_job_has_its_old_place_in_the_order() -> None:
    w = World(("a", 1))
    w.running(spec(1, 1))
    first, second = w.submit(spec(1, 1)), w.submit(spec(1, 1))
    hold(w, first)
    assert [w.cluster.queue.position(job) for job in (first, second)] == [0, 1]

    unhold(w, first)

    assert [w.cluster.queue.position(job) for job in (first, second)] == [1, 2]


def test_holding_and_releasing_twice_changes_nothing() -> None:
    w = World()
    job = w.submit(spec(1), queue_anyway=True)

    once = hold(w, job)
    w.advance(5)
    assert hold(w, job) == once
    assert unhold(w, job) == unhold(w, job)


def test_a_job_that_has_nodes_is_not_held() -> None:
    w = World(("a", 1))
    job = w.running(spec(1, 1))
    assert refusal(hold(w, job)) == (
        f"job {job} has its nodes already (running); `muster suspend` stops it until it is resumed"
    )


def test_only_operators_release_what_an_operator_holds() -> None:
    w = World(("a", 1))
    job = w.submit(spec(1, 1, hold=True))
    hold(w, job, by_operator=True)

    answer = unhold(w, job)

    assert refusal(answer) == f"job {job} is held by operator ann; only an operator releases it"
    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.FORBIDDEN
    unhold(w, job, by_operator=True)
    assert w.phase(job) is JobPhase.PREPARING, "both holds are gone"


def test_a_waiting_job_is_stopped_at_once() -> None:
    w = World(("a", 1))
    job = w.submit(spec(2, 1, hold=True), queue_anyway=True)
    w.stop(job)
    assert w.phase(job) is JobPhase.STOPPED
    assert refusal(hold(w, job)) == f"job {job} has ended (stopped)"


def test_waiting_jobs_take_no_room_from_the_queue() -> None:
    w = World()
    w.cluster.limits = Limits(queued=1)
    held = w.submit(spec(1, hold=True), queue_anyway=True)
    queued = w.submit(spec(1), queue_anyway=True)
    assert (w.phase(held), w.phase(queued)) == (JobPhase.WAITING, JobPhase.QUEUED)


def test_holds_survive_a_restart_of_the_coordinator() -> None:
    w = World(("a", 1))
    job = w.submit(spec(1, 1, hold=True))
    w.restart()
    w.connect("a")
    assert w.phase(job) is JobPhase.WAITING
    unhold(w, job)
    assert w.phase(job) is JobPhase.PREPARING


# times


def test_a_job_waits_until_its_time_and_is_then_placed() -> None:
    w = World(("a", 1))
    job = w.submit(spec(1, 1, not_before=AT + timedelta(seconds=20)))
    assert w.cluster.jobs[job].holds == (WaitReason(kind=WaitKind.TIME, until=AT + timedelta(seconds=20)),)

    w.advance(19)
    assert w.phase(job) is JobPhase.WAITING
    w.advance(1)
    assert w.phase(job) is JobPhase.PREPARING


def test_a_time_that_has_passed_holds_nothing() -> None:
    w = World(("a", 1))
    assert w.phase(w.submit(spec(1, 1, not_before=AT - HOUR))) is JobPhase.PREPARING


def test_a_held_job_waits_on_after_its_time() -> None:
    w = World(("a", 1))
    job = w.submit(spec(1, 1, hold=True, not_before=AT + timedelta(seconds=5)))
    w.advance(6)
    assert [hold.kind for hold in w.cluster.jobs[job].holds] == [WaitKind.USER]
    unhold(w, job)
    assert w.phase(job) is JobPhase.PREPARING


def test_a_time_that_passed_while_the_coordinator_was_away_has_come() -> None:
    w = World(("a", 1))
    job = w.submit(spec(1, 1, not_before=AT + timedelta(seconds=20)))
    w.now = AT + HOUR
    w.restart()
    w.connect("a")
    w.advance(1)
    assert w.phase(job) is JobPhase.PREPARING


# suspended jobs


def test_a_suspended_job_gives_up_its_seats_and_goes_on_as_another_attempt_in_its_old_place() -> None:
    """Scenario K2: a running gang is suspended and resumed."""
    w = World(("a", 1))
    job = w.running(spec(1, 1))
    sequence = w.cluster.jobs[job].sequence
    later = w.submit(spec(1, 1))

    suspend(w, job)
    assert w.phase(job) is JobPhase.STOPPING
    w.tell(job, 0, Stage.STOPPED)

    assert (w.phase(job), w.phase(later)) == (JobPhase.WAITING, JobPhase.PREPARING)
    assert w.cluster.jobs[job].attempt == 2
    assert w.cluster.jobs[job].sequence == sequence
    resume(w, job)
    assert w.phase(job) is JobPhase.QUEUED
    w.tell_all(later, Stage.PREPARED, Stage.ARMED, Stage.RUNNING, Stage.EXITED, log_complete=True)
    assert w.phase(job) is JobPhase.PREPARING


def test_a_suspended_job_is_told_why_it_stops_and_has_the_time_of_a_job_that_comes_back() -> None:
    w = World(("a", 1))
    job = w.running(spec(1, 1, timeouts=Timeouts(grace=timedelta(seconds=5), preempt=timedelta(seconds=90))))
    suspend(w, job)
    (line,) = w.last_plan("a").desired
    assert line.stop == StopOrder(reason=StopReason.SUSPENDED, grace=timedelta(seconds=90))


def test_suspending_never_uses_up_restarts() -> None:
    w = World(("a", 1))
    job = w.running(spec(1, 1, restarts=RestartPolicy(limit=1)))
    for _ in range(3):
        suspend(w, job)
        w.tell(job, 0, Stage.STOPPED)
        resume(w, job)
        w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)

    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1))

    assert w.cluster.jobs[job].attempt == 5, "the one restart that the job has is still there"


@pytest.mark.parametrize("code", [0, 1, 143])
def test_how_user_code_ends_after_the_order_does_not_matter(code: int) -> None:
    w = World(("a", 1))
    job = w.running(spec(1, 1))
    suspend(w, job)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=code))
    assert w.phase(job) is JobPhase.WAITING
    failure = w.cluster.attempts[w.cluster.jobs[job].attempt_id._replace(number=1)].failure
    assert failure is not None
    assert (failure.kind, str(failure)) == (FailureKind.SUSPENDED, "suspended by ann")


def test_a_job_that_is_resumed_before_it_has_stopped_is_queued_at_once() -> None:
    w = World(("a", 1))
    job = w.running(spec(1, 1))
    suspend(w, job)
    resume(w, job)
    w.tell(job, 0, Stage.STOPPED)
    assert w.cluster.jobs[job].attempt == 2
    assert w.phase(job) is JobPhase.PREPARING


def test_a_job_that_is_not_placed_yet_is_suspended_without_another_attempt() -> None:
    w = World()
    job = w.submit(spec(1), queue_anyway=True)
    suspend(w, job)
    assert (w.phase(job), w.cluster.jobs[job].attempt) == (JobPhase.WAITING, 1)
    assert (
        refusal(w.turn(HoldRequested(job=JobId("none")))[0]) == "there is no job none; `muster jobs --all` lists them"
    )
    resume(w, job)
    assert w.phase(job) is JobPhase.QUEUED


def test_a_suspended_job_can_be_stopped() -> None:
    w = World(("a", 1))
    job = w.running(spec(1, 1))
    suspend(w, job)
    w.stop(job)
    w.tell(job, 0, Stage.STOPPED)
    assert (w.phase(job), w.cluster.jobs[job].attempt) == (JobPhase.STOPPED, 1)
    assert refusal(suspend(w, job)) == f"job {job} has ended (stopped)"


def test_a_suspended_gang_whose_node_is_lost_waits_for_its_fence_before_it_can_be_resumed_into_the_queue() -> None:
    w = World(("a", 1), ("b", 1))
    job = w.running(spec(2, 1))
    suspend(w, job)
    w.tell(job, 0, Stage.STOPPED)
    node = w.seat(job, 1)
    w.disconnect(node)
    pass_time(w, 600, node)
    assert (w.phase(job), w.cluster.jobs[job].attempt) == (JobPhase.WAITING, 2)
