"""Reports may be repeated, late and out of order: they only ever bring an execution forward."""

from itertools import pairwise

import pytest

from coordinator.core.events import ExecutionsReported
from muster.domain.gangs.plan import Goal, Stage
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.builders import World, report, spec

PAIR = spec(2, gpus=1)
WAY = (Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING, Stage.EXITED)
AFTERWARDS = [(late, now) for now, late in pairwise(reversed(WAY))] + [(Stage.PREPARING, Stage.EXITED)]


def world() -> World:
    return World(("a", 1), ("b", 1))


@pytest.mark.parametrize("stage", WAY)
def test_a_repeated_report_changes_nothing(stage: Stage) -> None:
    w = world()
    job = w.submit(PAIR)
    for each in WAY[: WAY.index(stage) + 1]:
        w.tell_all(job, each)
    before = w.store.load()
    w.advance(1)
    w.tell_all(job, stage)

    assert w.store.load() == before
    assert w.effects == []


@pytest.mark.parametrize(("late", "now"), AFTERWARDS)
def test_a_late_report_changes_nothing(late: Stage, now: Stage) -> None:
    w = world()
    job = w.submit(PAIR)
    for each in WAY[: WAY.index(now) + 1]:
        w.tell_all(job, each)
    before = w.store.load()
    w.tell_all(job, late, detail="late")

    assert w.store.load() == before
    assert w.effects == []


@pytest.mark.parametrize("end", [Stage.STOPPED, Stage.FAILED, Stage.EXITED])
@pytest.mark.parametrize("later", [Stage.RUNNING, Stage.STOPPED, Stage.FAILED])
def test_what_has_ended_has_ended(end: Stage, later: Stage) -> None:
    w = world()
    job = w.running(PAIR)
    w.stop(job)
    w.tell_all(job, end)
    before = w.store.load()
    w.tell_all(job, later)

    assert w.store.load() == before


def test_an_exit_code_once_recorded_never_changes() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=3))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0))

    assert w.rank(job, 0).exit == Exit(code=3)


def test_a_report_of_another_node_changes_nothing() -> None:
    w = world()
    job = w.running(PAIR)
    before = w.store.load()
    w.turn(ExecutionsReported(node=NodeId("b"), reports=(report(w.rank(job, 0).id, Stage.FAILED),)))

    assert w.store.load() == before


def test_a_report_about_a_job_that_waits_changes_nothing() -> None:
    w = world()
    w.running(PAIR)
    waiting = w.submit(PAIR)
    w.turn(ExecutionsReported(node=NodeId("a"), reports=(report(w.rank(waiting, 0).id, Stage.RUNNING),)))

    assert w.states(waiting) == [State.QUEUED, State.QUEUED]


def test_the_news_of_all_ranks_may_come_in_one_turn() -> None:
    w = world()
    job = w.submit(PAIR)
    members = list(w.cluster.gangs.members(AttemptId(job, 1)))
    for stage in WAY:
        w.turn(
            *(
                ExecutionsReported(node=member.node, reports=(report(member.id, stage),))
                for member in members
                if member.node is not None
            )
        )

    assert w.phase(job) is JobPhase.SUCCEEDED


def test_several_stages_in_one_report_message_are_taken_in_order() -> None:
    w = world()
    job = w.submit(PAIR)
    name = w.rank(job, 0).id
    w.turn(
        ExecutionsReported(
            node=NodeId("a"), reports=(report(name, Stage.PREPARING, detail="pulls"), report(name, Stage.PREPARED))
        )
    )

    assert list(w.rank(job, 0).times) == [State.QUEUED, State.PLACED, State.PREPARING, State.CHECKED_IN]


def test_a_report_that_it_runs_does_not_undo_the_order_to_stop() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell_all(job, Stage.PREPARED, Stage.ARMED)
    w.stop(job)
    w.tell_all(job, Stage.RUNNING)

    assert w.states(job) == [State.STOPPING, State.STOPPING]
    assert w.attempt(job).goal is Goal.STOP


def test_progress_is_told_to_those_who_watch_and_to_no_node() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell(job, 0, Stage.PREPARING, detail="pulling image 1 %")
    w.tell(job, 0, Stage.PREPARING, detail="pulling image 2 %")

    assert [type(effect).__name__ for effect in w.effects] == ["AnnounceJob"]


def test_the_end_of_a_job_is_told_to_those_who_watch_before_nodes_are_told_anything() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 0, Stage.EXITED)
    w.tell(job, 1, Stage.FAILED)

    assert [type(effect).__name__ for effect in w.effects] == ["AnnounceJob", "SendPlan"]


def test_whoever_has_to_start_a_job_hears_of_it_before_those_who_watch() -> None:
    w = world()
    w.submit(PAIR)

    assert [type(effect).__name__ for effect in w.effects] == ["SendPlan", "SendPlan", "AnnounceJob"]
