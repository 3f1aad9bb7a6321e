"""Stop and delete."""

from coordinator.core.answers import Accepted, RefusalCause, Refused
from coordinator.core.effects import AnnounceJob, ForgetLogs, SendPlan
from coordinator.core.events import DeleteRequested, ExecutionsReported, StopRequested
from coordinator.store.store import Snapshot
from muster.domain.gangs.plan import Goal, Stage
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.builders import World, report, spec

PAIR = spec(2, gpus=1)
NOBODY = JobId("nobody")


def world() -> World:
    return World(("a", 1), ("b", 1))


def test_a_queued_job_that_is_stopped_has_ended_at_once() -> None:
    w = World()
    job = w.submit(PAIR, queue_anyway=True)

    answer = w.stop(job)

    assert answer == Accepted(job=w.cluster.jobs[job])
    assert w.states(job) == [State.STOPPED, State.STOPPED]
    assert (w.phase(job), w.cluster.jobs[job].ended_at) == (JobPhase.STOPPED, w.now)


def test_executions_that_are_stopped_hold_their_gpus_until_their_agents_confirm_it() -> None:
    w = world()
    job, waiting = w.running(PAIR), w.submit(PAIR)
    w.stop(job)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=143))
    assert (w.phase(job), w.phase(waiting)) == (JobPhase.STOPPING, JobPhase.QUEUED)

    w.tell(job, 1, Stage.EXITED, exit=Exit(code=143))

    assert (w.phase(job), w.phase(waiting)) == (JobPhase.STOPPED, JobPhase.PREPARING)


def test_all_nodes_are_told_to_stop() -> None:
    w = world()
    job = w.running(PAIR)
    w.stop(job)

    goals = [[(line.execution, line.goal) for line in w.last_plan(node).desired] for node in "ab"]
    assert goals == [[(w.rank(job, rank).id, Goal.STOP)] for rank in range(2)]


def test_an_exit_code_of_0_after_the_order_to_stop_is_a_stop_all_the_same() -> None:
    w = world()
    job = w.running(PAIR)
    w.stop(job)
    w.tell_all(job, Stage.EXITED)

    assert w.phase(job) is JobPhase.STOPPED


def test_to_stop_again_changes_nothing() -> None:
    w = world()
    job = w.running(PAIR)
    w.stop(job)
    before = w.store.load()
    w.advance(1)

    assert w.stop(job) == Accepted(job=w.cluster.jobs[job])
    assert w.store.load() == before


def test_to_stop_a_job_that_has_ended_changes_nothing() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell_all(job, Stage.EXITED)
    before = w.store.load()

    assert w.stop(job) == Accepted(job=w.cluster.jobs[job])
    assert w.store.load() == before


def test_a_job_that_is_stopping_goes_on_stopping_after_a_restart_of_the_coordinator() -> None:
    w = world()
    job = w.running(PAIR)
    w.stop(job)
    w.restart()
    for rank, node in enumerate("ab"):
        w.connect(node, reports=[report(w.rank(job, rank).id, Stage.RUNNING)])

    assert [follower.goals for follower in w.followers.values()] == [
        {w.rank(job, rank).id: Goal.STOP} for rank in range(2)
    ]


def test_nobody_can_stop_or_delete_a_job_that_is_not_there() -> None:
    w = world()
    message = "there is no job nobody; `muster jobs --all` lists them"

    assert w.stop(NOBODY) == Refused(cause=RefusalCause.UNKNOWN, message=message)
    assert w.delete(NOBODY) == Refused(cause=RefusalCause.UNKNOWN, message=message)


def test_a_job_that_has_ended_is_deleted_with_everything_of_it() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell_all(job, Stage.EXITED, log_complete=True)
    w.delete(job)

    assert w.store.load() == Snapshot(nodes=w.store.load().nodes, projects=w.store.load().projects)
    assert w.effects == [AnnounceJob(job=job), ForgetLogs(job=job)]


def test_nodes_that_still_have_something_of_a_deleted_job_are_told_to_clear_it_away() -> None:
    w = world()
    job = w.running(PAIR)
    executions = [w.rank(job, rank).id for rank in range(2)]
    w.tell_all(job, Stage.EXITED)
    w.delete(job)

    assert [w.last_plan(node).removed for node in "ab"] == [(execution,) for execution in executions]


def test_a_job_that_has_not_ended_is_not_deleted_without_force() -> None:
    w = world()
    job = w.running(PAIR)

    assert w.delete(job) == Refused(
        cause=RefusalCause.CONFLICT,
        message=f"job {job} has not ended (running); stop it first, or delete it with force",
    )
    assert w.phase(job) is JobPhase.RUNNING


def test_with_force_a_job_is_stopped_and_then_deleted() -> None:
    w = world()
    job = w.running(PAIR)

    assert isinstance(w.delete(job, force=True), Accepted)
    assert w.phase(job) is JobPhase.STOPPING
    w.tell_all(job, Stage.EXITED)

    assert job not in w.cluster.jobs


def test_with_force_a_queued_job_is_gone_at_once() -> None:
    w = World()
    job = w.submit(PAIR, queue_anyway=True)
    w.delete(job, force=True)

    assert w.store.load().jobs == ()


def test_a_job_that_is_stopping_already_can_be_deleted_with_force() -> None:
    w = world()
    job = w.running(PAIR)
    w.stop(job)
    w.delete(job, force=True)
    w.tell_all(job, Stage.EXITED)

    assert job not in w.cluster.jobs


def test_the_wish_to_delete_is_kept_over_a_restart_of_the_coordinator() -> None:
    w = world()
    job = w.running(PAIR)
    executions = [w.rank(job, rank).id for rank in range(2)]
    w.delete(job, force=True)
    w.restart()
    for execution, node in zip(executions, "ab", strict=True):
        w.connect(node, reports=[report(execution, Stage.EXITED)])

    assert job not in w.cluster.jobs


def test_the_end_of_a_job_and_two_wishes_to_delete_it_may_come_in_one_turn() -> None:
    w = world()
    job = w.running(PAIR)
    w.delete(job, force=True)
    ends = (
        ExecutionsReported(node=member.node, reports=(report(member.id, Stage.EXITED),))
        for member in list(w.cluster.gangs.members(AttemptId(job, 1)))
        if member.node is not None
    )
    answers = w.turn(*ends, DeleteRequested(job=job), StopRequested(job=job), DeleteRequested(job=job, force=True))

    assert [type(answer) for answer in answers[2:]] == [Accepted, Refused, Refused]
    assert w.store.load().jobs == ()


def test_reports_about_a_deleted_job_change_nothing() -> None:
    w = world()
    job = w.running(PAIR)
    member = w.rank(job, 0)
    assert member.node is not None
    w.delete(job, force=True)
    w.tell_all(job, Stage.EXITED)
    before = w.store.load()
    w.turn(ExecutionsReported(node=member.node, reports=(report(member.id, Stage.EXITED, log_complete=True),)))

    assert w.store.load() == before
    assert not [effect for effect in w.effects if isinstance(effect, SendPlan)]


def test_a_name_that_no_job_has_any_more_leads_nowhere() -> None:
    w = world()
    first, second = w.submit(spec(1, name="same")), w.submit(spec(1, name="same"))
    w.delete(second, force=True)
    w.tell(second, 0, Stage.STOPPED)
    assert w.cluster.job_index.newest_named("same") == first

    w.delete(first, force=True)
    w.tell(first, 0, Stage.STOPPED)

    assert w.cluster.job_index.newest_named("same") is None
