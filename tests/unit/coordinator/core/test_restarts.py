"""A gang that failed starts again as a whole, by the job's rules, and never beside itself."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from coordinator.views.summary import summarise
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import ExitRules, RestartPolicy, parse_exit_codes
from tests.builders import World, spec


def restarting(size: int = 2, **rules: object) -> JobSpec:
    policy: dict[str, Any] = {"limit": 1, "infrastructure": 1, "backoff": timedelta(seconds=5), **rules}
    return spec(size, max_per_node=1, restarts=RestartPolicy(**policy))


def failing_for(codes: str) -> JobSpec:
    """A gang whose second role ends the job with these exit codes; the first says nothing of them."""
    wanted = restarting()
    (role,) = wanted.roles
    second = replace(role, name="second", count=1, exit_codes=ExitRules(fail=parse_exit_codes(codes)))
    return replace(wanted, roles=(replace(role, count=1), second))


@pytest.fixture
def world() -> World:
    return World(("node-1", 0), ("node-2", 0), ("node-3", 0))


def exit_with(world: World, job: JobId, rank: int, code: int) -> None:
    world.tell(job, rank, Stage.EXITED, exit=Exit(code=code))


def fail(world: World, job: JobId, code: int = 3) -> None:
    """Rank 1 ends badly and the others are stopped."""
    exit_with(world, job, 1, code)
    for rank in range(world.cluster.jobs[job].spec.size):
        if world.rank(job, rank).state is State.STOPPING:
            exit_with(world, job, rank, 143)


def run(world: World, job: JobId) -> None:
    world.tell_all(job, Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)


def test_a_failed_gang_starts_again_at_once_as_a_new_attempt(world: World) -> None:
    job = world.running(restarting())
    fail(world, job)
    assert (world.attempt(job).number, world.phase(job)) == (2, JobPhase.PREPARING)
    assert world.cluster.jobs[job].ended_at is None
    run(world, job)
    assert world.phase(job) is JobPhase.RUNNING


def test_no_new_attempt_begins_while_anything_of_the_old_one_is_live(world: World) -> None:
    job = world.running(restarting())
    exit_with(world, job, 1, 3)
    assert (world.attempt(job).number, world.phase(job)) == (1, JobPhase.STOPPING)


def test_ranks_stay_and_the_failed_node_is_avoided_if_there_is_another(world: World) -> None:
    job = world.running(restarting())
    assert world.seats(job) == ["node-1", "node-2"]
    fail(world, job)
    assert world.seats(job) == ["node-1", "node-3"]


def test_the_failed_node_is_used_again_if_there_is_no_other() -> None:
    world = World(("node-1", 0), ("node-2", 0))
    job = world.running(restarting())
    fail(world, job)
    assert world.seats(job) == ["node-1", "node-2"]


def test_the_job_fails_when_its_restarts_are_used_up(world: World) -> None:
    job = world.running(restarting(backoff=timedelta(seconds=1)))
    fail(world, job)
    run(world, job)
    fail(world, job)
    assert world.phase(job) is JobPhase.FAILED
    summary = summarise(world.cluster, job)
    assert summary == (
        "rank 1 on node-3: ended with exit code 3; "
        "it was restarted once after failures of its code, as often as the job allows"
    )


def test_the_second_restart_waits_for_its_pause(world: World) -> None:
    job = world.running(restarting(limit=5))
    fail(world, job)
    run(world, job)
    fail(world, job)
    assert (world.attempt(job).number, world.phase(job)) == (3, JobPhase.QUEUED)
    assert "attempt 3: not before" in summarise(world.cluster, job)
    world.advance(4.9)
    assert world.phase(job) is JobPhase.QUEUED
    world.advance(0.1)
    assert world.phase(job) is JobPhase.PREPARING


def test_others_are_placed_while_a_job_pauses(world: World) -> None:
    pausing = world.running(restarting(limit=5))
    fail(world, pausing)
    run(world, pausing)
    fail(world, pausing)
    other = world.submit(spec(3, max_per_node=1))
    assert world.phase(other) is JobPhase.PREPARING


def test_a_pause_outlives_a_restart_of_the_coordinator(world: World) -> None:
    job = world.running(restarting(limit=5))
    fail(world, job)
    run(world, job)
    fail(world, job)
    world.restart()
    for node in ("node-1", "node-2", "node-3"):
        world.connect(node)
    assert world.phase(job) is JobPhase.QUEUED
    world.advance(5)
    assert world.phase(job) is JobPhase.PREPARING


def test_a_job_that_is_stopped_does_not_start_again(world: World) -> None:
    job = world.running(restarting())
    exit_with(world, job, 1, 3)
    world.stop(job)
    exit_with(world, job, 0, 143)
    assert world.phase(job) is JobPhase.FAILED
    assert world.attempt(job).number == 1


def test_a_pausing_job_can_be_stopped(world: World) -> None:
    job = world.running(restarting(limit=5))
    fail(world, job)
    run(world, job)
    fail(world, job)
    world.stop(job)
    assert world.phase(job) is JobPhase.STOPPED
    assert world.cluster.jobs[job].ended_at is not None


def test_the_exit_codes_of_one_role_say_nothing_of_another(world: World) -> None:
    job = world.running(failing_for("3"))
    exit_with(world, job, 0, 3)
    exit_with(world, job, 1, 143)
    assert world.attempt(job).number == 2


def test_an_exit_code_that_the_role_fails_for_ends_the_job(world: World) -> None:
    job = world.running(failing_for("3"))
    fail(world, job)
    assert world.phase(job) is JobPhase.FAILED
    assert "exit_codes.fail: 3" in summarise(world.cluster, job)


def test_a_failure_before_user_code_counts_for_the_infrastructure(world: World) -> None:
    job = world.submit(restarting(limit=0))
    failure = Failure(kind=FailureKind.IMAGE, message="no such image")
    world.tell(job, 1, Stage.FAILED, failure=failure)
    world.tell(job, 0, Stage.STOPPED)
    assert (world.attempt(job).number, world.phase(job)) == (2, JobPhase.PREPARING)


def test_late_news_of_the_old_attempt_changes_nothing_in_the_new_one(world: World) -> None:
    job = world.running(restarting())
    old = world.rank(job, 0)
    fail(world, job)
    before = world.states(job)
    assert old.node is not None
    from_then = world.cluster.executions[old.id]
    world.connect(old.node)
    assert world.states(job) == before
    assert world.cluster.executions[old.id].exit == from_then.exit


def test_a_job_to_be_deleted_goes_when_its_last_attempt_ended(world: World) -> None:
    job = world.running(restarting())
    fail(world, job)
    world.delete(job, force=True)
    world.tell_all(job, Stage.STOPPED)
    assert job not in world.cluster.jobs


def test_a_lost_node_that_was_never_told_to_run_the_old_attempt_does_not_hinder_the_new_one(world: World) -> None:
    job = world.submit(restarting())
    world.tell(job, 1, Stage.FAILED)
    world.disconnect("node-1")
    world.advance(20)
    world.heartbeat("node-2")
    world.heartbeat("node-3")
    world.advance(75)

    assert world.attempt(job).number == 2
