"""Outputs on their way: what an execution had is free, its job waits, and what was stored stays stored."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.answers import Accepted, Refused
from coordinator.core.events import CordonRequested, HoldRequested, RemovalRequested, StopRequested, SuspendRequested
from muster.domain.data.outputs import STORING_OUTPUTS, UNWANTED_OUTPUTS, ExecutionOutputs, OutputsStage
from muster.domain.event import JobEventKind, NodeEventKind
from muster.domain.gangs.plan import Goal, Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, report, spec

ONE = spec(1, gpus=1)
STORED = ExecutionOutputs(stage=OutputsStage.STORED, tree="ab" * 32, size=90, files=1, bytes=7)
ON_NODE = ExecutionOutputs(stage=OutputsStage.ON_NODE, why="the fleet has no depot")


def storing(w: World, code: int = 0) -> JobId:
    """A job whose one execution has ended, and stores what it has left."""
    job = w.running(ONE)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=code), outputs=STORING_OUTPUTS)
    return job


def outputs(w: World, job: JobId) -> ExecutionOutputs:
    found = w.rank(job, 0).outputs
    assert found is not None
    return found


def test_what_an_execution_had_is_free_while_its_outputs_are_stored() -> None:
    w = World(("a", 1))
    job = storing(w)
    other = w.submit(ONE)

    assert (w.phase(job), w.states(job)) == (JobPhase.STORING, [State.SUCCEEDED])
    assert w.phase(other) is JobPhase.PREPARING


def test_its_job_ends_once_they_are_stored() -> None:
    w = World(("a", 1))
    job = storing(w)
    assert w.cluster.jobs[job].ended_at is None
    w.advance(5)
    w.tell(job, 0, Stage.EXITED, outputs=STORED)

    assert (w.phase(job), w.cluster.jobs[job].ended_at) == (JobPhase.SUCCEEDED, w.now)
    assert w.attempt(job).ended_at == w.now - timedelta(seconds=5)
    assert (outputs(w, job).tree, outputs(w, job).at) == (STORED.tree, w.now)


def test_it_ends_as_its_user_code_did_where_they_cannot_be_stored() -> None:
    w = World(("a", 1))
    job = storing(w, code=3)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=3), outputs=ON_NODE)

    assert (w.phase(job), outputs(w, job).why) == (JobPhase.FAILED, "the fleet has no depot")


def test_what_is_stored_does_not_change_any_more() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.tell(job, 0, Stage.EXITED, outputs=STORED)
    known = w.rank(job, 0)
    for told in (STORED, STORING_OUTPUTS, ON_NODE, None):
        w.tell(job, 0, Stage.EXITED, outputs=told)

    assert (w.rank(job, 0), w.phase(job)) == (known, JobPhase.SUCCEEDED)


def test_its_node_keeps_it_until_they_are_stored_and_its_log_is_complete() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.tell(job, 0, Stage.EXITED, log_complete=True, outputs=STORING_OUTPUTS)
    w.advance(1)
    assert w.cluster.load.is_planned(NodeId("a"), w.rank(job, 0).id)
    w.tell(job, 0, Stage.EXITED, log_complete=True, outputs=STORED)
    w.advance(1)

    assert not w.cluster.load.is_planned(NodeId("a"), w.rank(job, 0).id)
    assert w.last_plan("a").removed == (w.rank(job, 0).id,)


def test_it_stays_in_the_plan_of_an_agent_that_begins_anew() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.RUNNING)])

    assert [(line.execution, line.goal) for line in w.last_plan("a").desired] == [(w.rank(job, 0).id, Goal.STOP)]
    assert w.phase(job) is JobPhase.STORING


def test_a_stop_does_not_cut_it_short() -> None:
    w = World(("a", 1))
    job = storing(w)

    assert w.turn(StopRequested(job=job)) == [Accepted(job=w.cluster.jobs[job])]
    w.tell(job, 0, Stage.EXITED, outputs=STORED)
    assert (w.phase(job), w.cluster.jobs[job].stop_requested_at) == (JobPhase.SUCCEEDED, None)


@pytest.mark.parametrize("event", [HoldRequested, SuspendRequested])
def test_a_job_that_only_stores_is_neither_held_nor_suspended(event: type[HoldRequested | SuspendRequested]) -> None:
    w = World(("a", 1))
    job = storing(w, code=1)
    [answer] = w.turn(event(job=job))

    assert isinstance(answer, Refused)
    assert answer.message == f"job {job} has ended (storing)"


def test_nobody_waits_for_the_outputs_of_a_job_that_is_deleted_with_force() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.delete(job, force=True)

    assert job not in w.cluster.jobs


def test_outputs_of_a_node_that_is_lost_are_lost_and_the_job_ends() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.disconnect("a")
    w.advance(3600)

    assert w.phase(job) is JobPhase.SUCCEEDED
    assert (outputs(w, job).stage, outputs(w, job).why) == (OutputsStage.LOST, "its node is lost")


def test_a_node_that_comes_back_with_all_stored_is_believed() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.disconnect("a")
    w.advance(3600)
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.EXITED, outputs=STORED)])

    assert outputs(w, job).stage is OutputsStage.STORED


def test_a_job_that_has_ended_does_not_wait_again_for_a_node_that_comes_back() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.disconnect("a")
    w.advance(3600)
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.EXITED, outputs=STORING_OUTPUTS)])

    assert (w.phase(job), outputs(w, job).stage) == (JobPhase.SUCCEEDED, OutputsStage.LOST)


def test_outputs_of_a_node_that_is_removed_are_lost() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.disconnect("a")
    w.turn(RemovalRequested(node=NodeId("a")))

    assert (w.phase(job), outputs(w, job).stage) == (JobPhase.SUCCEEDED, OutputsStage.LOST)


@pytest.mark.parametrize("knows", [True, False])
def test_outputs_that_an_agent_does_not_have_any_more_are_not_waited_for(*, knows: bool) -> None:
    w = World(("a", 1))
    job = storing(w)
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.EXITED)] if knows else [])

    assert (w.phase(job), outputs(w, job).stage) == (JobPhase.SUCCEEDED, OutputsStage.LOST)


def test_another_attempt_does_not_wait_and_the_job_ends_after_both() -> None:
    w = World(("a", 1))
    job = w.running(spec(1, gpus=1, restarts=RestartPolicy(limit=1)))
    first = w.rank(job, 0)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1), outputs=STORING_OUTPUTS)
    assert (w.cluster.jobs[job].attempt, w.phase(job)) == (2, JobPhase.PREPARING)
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING, Stage.EXITED)
    assert (w.phase(job), w.cluster.jobs[job].ended_at) == (JobPhase.STORING, None)

    w.connect("a", reports=[report(first.id, Stage.EXITED, exit=Exit(code=1), outputs=STORED)])
    assert w.phase(job) is JobPhase.SUCCEEDED
    assert w.cluster.executions[first.id].outputs is not None


def test_it_goes_on_after_a_restart_of_the_coordinator() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.restart()
    assert w.phase(job) is JobPhase.STORING
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.EXITED, outputs=STORED)])

    assert w.phase(job) is JobPhase.SUCCEEDED


def told(w: World, job: JobId) -> list[tuple[JobEventKind, str]]:
    """What people are told of the outputs of a job."""
    kinds = {JobEventKind.OUTPUTS_STORED, JobEventKind.OUTPUTS_LOST}
    return [(event.kind, event.text) for event in w.store.events(job, 0, 100) if event.kind in kinds]


def test_a_job_waits_for_its_outputs_no_longer_than_it_says() -> None:
    w = World(("a", 1))
    job = w.running(replace(ONE, timeouts=replace(ONE.timeouts, store=timedelta(minutes=1))))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    w.advance(59)
    assert w.phase(job) is JobPhase.STORING
    w.advance(1)

    assert (w.phase(job), outputs(w, job).stage) == (JobPhase.SUCCEEDED, OutputsStage.ON_NODE)
    assert outputs(w, job).why == "they were not stored within 1m (timeouts.store)"


def test_the_time_for_storing_goes_on_when_the_coordinator_is_started_anew() -> None:
    w = World(("a", 1))
    job = w.running(replace(ONE, timeouts=replace(ONE.timeouts, store=timedelta(minutes=1))))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    w.advance(40)
    w.restart()
    w.advance(20)

    assert (w.phase(job), outputs(w, job).stage) == (JobPhase.SUCCEEDED, OutputsStage.ON_NODE)


def test_what_was_stored_in_time_is_not_given_up() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.tell(job, 0, Stage.EXITED, outputs=STORED)
    w.advance(25 * 3600)

    assert outputs(w, job).tree == STORED.tree


def test_nobody_waits_for_the_outputs_of_a_job_that_is_stopped_now() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.turn(StopRequested(job=job))
    assert w.phase(job) is JobPhase.STORING
    w.turn(StopRequested(job=job, now=True))

    assert (w.phase(job), outputs(w, job).stage) == (JobPhase.SUCCEEDED, OutputsStage.ON_NODE)
    assert told(w, job) == [
        (JobEventKind.OUTPUTS_LOST, "outputs are not stored, of rank 0: its job was stopped with --now; they stay on a")
    ]


def test_a_job_that_is_stopped_now_stores_nothing_afterwards() -> None:
    w = World(("a", 1))
    job = w.running(ONE)
    w.turn(StopRequested(job=job, now=True))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)

    assert (w.phase(job), outputs(w, job).stage) == (JobPhase.STOPPED, OutputsStage.ON_NODE)


def test_people_are_told_nothing_of_outputs_that_nobody_wants() -> None:
    w = World(("a", 1))
    job = storing(w, code=3)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=3), outputs=UNWANTED_OUTPUTS)

    assert (w.phase(job), told(w, job)) == (JobPhase.FAILED, [])


def test_people_are_told_once_of_the_outputs_of_an_attempt() -> None:
    w = World(("a", 2))
    job = w.running(spec(3))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    w.tell(job, 0, Stage.EXITED, outputs=STORED)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    w.tell(job, 2, Stage.EXITED, exit=Exit(code=0))
    assert told(w, job) == []
    w.tell(job, 1, Stage.EXITED, outputs=ON_NODE)

    assert told(w, job) == [
        (JobEventKind.OUTPUTS_STORED, "outputs are stored: 1 file, 7 B"),
        (JobEventKind.OUTPUTS_LOST, "outputs are not stored, of rank 1: the fleet has no depot; they stay on a"),
    ]


def test_people_are_told_also_where_the_last_execution_has_left_nothing() -> None:
    w = World(("a", 2))
    job = w.running(spec(2))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    w.tell(job, 0, Stage.EXITED, outputs=STORED)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=0))

    assert told(w, job) == [(JobEventKind.OUTPUTS_STORED, "outputs are stored: 1 file, 7 B")]


def test_a_node_is_drained_once_all_is_stored() -> None:
    w = World(("a", 1))
    job = storing(w)
    w.turn(CordonRequested(node=NodeId("a")))
    assert not drained(w)
    w.tell(job, 0, Stage.EXITED, outputs=STORED)
    assert drained(w)


def drained(w: World) -> bool:
    """Whether people were told that nothing runs on the node any more."""
    return any(event.kind is NodeEventKind.DRAINED for event in w.store.node_events(NodeId("a"), 0, 100))
