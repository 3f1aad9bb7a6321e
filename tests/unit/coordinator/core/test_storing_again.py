"""Outputs that are stored again: the job does not wait, and it survives whoever is away meanwhile."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.attempts.storing_again import why_not
from coordinator.core.data_events import OutputsRetried
from coordinator.core.events import RemovalRequested
from muster.domain.data.outputs import STORING_OUTPUTS, ExecutionOutputs, OutputsStage
from muster.domain.event import JobEventKind
from muster.domain.fleet.features import ALL_FEATURES, STORE_AGAIN
from muster.domain.gangs.plan import Desired, Goal, Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, spec

ON_NODE = ExecutionOutputs(stage=OutputsStage.ON_NODE, why="the fleet has no depot")
STORED = ExecutionOutputs(stage=OutputsStage.STORED, tree="ab" * 32, size=90, files=1, bytes=7)
HOUR = replace(spec(1), timeouts=replace(spec(1).timeouts, store=timedelta(hours=1)))


def kept() -> tuple[World, JobId]:
    """A job that has ended, whose outputs lie on its node alone; nothing of it is planned any more."""
    w = World(("a", 0))
    job = w.running(HOUR)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), log_complete=True, outputs=ON_NODE)
    w.advance(1)
    assert not w.cluster.load.is_planned(NodeId("a"), w.rank(job, 0).id)
    return w, job


def retry(w: World, job: JobId) -> None:
    w.turn(OutputsRetried(attempt=w.cluster.jobs[job].attempt_id, ranks=(0,)))


def told(w: World, job: JobId, outputs: ExecutionOutputs, retries: int = 1) -> None:
    """What the agent tells, which knows nothing of the execution but this."""
    w.tell(job, 0, Stage.STOPPED, log_complete=True, outputs=replace(outputs, retries=retries))


def stage(w: World, job: JobId) -> tuple[OutputsStage, str]:
    outputs = w.rank(job, 0).outputs
    assert outputs is not None
    return outputs.stage, outputs.why


def line(w: World) -> Desired:
    [found] = w.last_plan("a").desired
    return found


def test_the_node_is_told_of_an_execution_that_it_has_cleared_away_long_ago() -> None:
    w, job = kept()
    retry(w, job)

    told_line = line(w)
    assert (told_line.execution, told_line.goal, told_line.store_again) == (w.rank(job, 0).id, Goal.STOP, 1)
    assert told_line.assignment is not None
    assert (w.phase(job), stage(w, job)) == (JobPhase.SUCCEEDED, (OutputsStage.STORING_AGAIN, ""))


def test_what_was_stored_the_second_time_is_there_and_the_node_may_forget_it() -> None:
    w, job = kept()
    retry(w, job)
    told(w, job, STORING_OUTPUTS)
    assert stage(w, job)[0] is OutputsStage.STORING_AGAIN
    told(w, job, STORED)
    w.advance(1)

    assert stage(w, job)[0] is OutputsStage.STORED
    assert w.last_plan("a").removed == (w.rank(job, 0).id,)
    assert [event.kind for event in w.store.events(job, 0, 100)][-1] is JobEventKind.OUTPUTS_STORED


def test_asking_twice_changes_nothing_and_old_news_do_not_count() -> None:
    w, job = kept()
    retry(w, job)
    known = w.rank(job, 0)
    retry(w, job)
    told(w, job, ON_NODE, retries=0)

    assert w.rank(job, 0) == known


def test_what_failed_again_can_be_asked_for_again() -> None:
    w, job = kept()
    retry(w, job)
    told(w, job, replace(ON_NODE, why="they are too much"))
    assert stage(w, job) == (OutputsStage.ON_NODE, "they are too much")
    retry(w, job)

    assert line(w).store_again == 2


def test_it_waits_for_an_agent_that_is_away_and_outlives_the_coordinator() -> None:
    w, job = kept()
    w.disconnect("a")
    retry(w, job)
    w.restart()
    w.connect("a", reports=[])

    assert line(w).store_again == 1
    told(w, job, STORED)
    assert stage(w, job)[0] is OutputsStage.STORED


def test_it_goes_on_where_a_node_counts_as_lost_for_a_while_but_not_for_good() -> None:
    w, job = kept()
    retry(w, job)
    w.disconnect("a")
    w.advance(600)
    assert stage(w, job)[0] is OutputsStage.STORING_AGAIN
    w.turn(RemovalRequested(node=NodeId("a")))

    assert stage(w, job) == (OutputsStage.LOST, "its node was removed by an operator")


def test_it_is_given_up_when_the_time_for_storing_is_over_also_over_a_restart() -> None:
    w, job = kept()
    w.advance(3000)
    retry(w, job)
    w.restart()
    w.connect("a", reports=[])
    w.advance(3599)
    assert stage(w, job)[0] is OutputsStage.STORING_AGAIN
    w.advance(1)

    assert stage(w, job) == (OutputsStage.ON_NODE, "they were not stored within 1h (timeouts.store)")


def test_it_is_given_up_also_where_the_clock_was_set_back_meanwhile() -> None:
    w, job = kept()
    w.advance(3000)
    retry(w, job)
    w.now -= timedelta(minutes=30)
    w.restart()
    w.connect("a", reports=[])
    w.advance(3600)
    assert stage(w, job)[0] is OutputsStage.STORING_AGAIN
    w.advance(1800)

    assert stage(w, job)[0] is OutputsStage.ON_NODE


def test_a_job_that_is_deleted_meanwhile_leaves_the_plan() -> None:
    w, job = kept()
    retry(w, job)
    execution = w.rank(job, 0).id
    w.delete(job)

    assert w.last_plan("a").removed == (execution,)


@pytest.mark.parametrize(
    ("features", "why"),
    [(ALL_FEATURES, None), (ALL_FEATURES - {STORE_AGAIN}, "the agent of its node a is too old for that")],
)
def test_an_agent_that_does_not_know_how_is_not_asked(features: frozenset[str], why: str | None) -> None:
    w, job = kept()
    w.connect("a", features=features)
    found = why_not(w.cluster, w.rank(job, 0))

    assert (found or "").partition(";")[0] == (why or "")


def test_outputs_that_are_in_the_depot_or_on_their_way_are_not_stored_again() -> None:
    w = World(("a", 0))
    job = w.running(HOUR)
    assert why_not(w.cluster, w.rank(job, 0)) == "it has left nothing"
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    assert why_not(w.cluster, w.rank(job, 0)) == "its outputs are on their way"
    w.tell(job, 0, Stage.EXITED, outputs=STORED)
    assert why_not(w.cluster, w.rank(job, 0)) == "its outputs are in the depot"
