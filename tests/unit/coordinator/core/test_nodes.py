"""Nodes join, go silent, are lost and come back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.answers import Noted, RefusalCause, Refused
from coordinator.core.effects import AnnounceStory, CloseSession
from coordinator.core.events import ExecutionsReported, HeartbeatReceived, NodeDisconnected, TimePassed
from coordinator.core.records import Node
from muster.domain.event import node_subject
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.fleet.node import NodeState
from muster.domain.gangs.plan import Goal, Stage
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.builders import AT, World, gpu, inventory, report, spec

A, B = NodeId("a"), NodeId("b")
PAIR = spec(2, gpus=1)


def world() -> World:
    return World(("a", 1), ("b", 1))


def state(w: World, node: NodeId) -> NodeState:
    return w.cluster.presence[node].state


def silent(w: World, node: NodeId, seconds: int) -> None:
    """All nodes but one say that they are alive."""
    for _ in range(seconds // 10):
        w.advance(10)
        for other in w.cluster.nodes:
            if other != node:
                w.heartbeat(other)


def test_a_node_that_joins_is_remembered() -> None:
    w = world()

    assert w.store.load().nodes[0] == Node(
        name=A,
        identity="identity of a",
        address="address-of-a",
        inventory=inventory("a", 1),
        agent_version="0.1",
        joined_at=AT,
        peer_port=20000,
        features=ALL_FEATURES,
    )
    assert state(w, A) is NodeState.READY


def test_jobs_that_wait_are_placed_when_a_node_joins() -> None:
    w = World(("a", 1))
    job = w.submit(PAIR, queue_anyway=True)
    assert w.phase(job) is JobPhase.QUEUED

    w.connect("b", inventory("b", 1))

    assert w.seats(job) == ["a", "b"]


def test_nothing_is_placed_on_a_node_whose_stream_has_ended_and_what_runs_there_goes_on() -> None:
    w = world()
    running = w.running(spec(1, gpus=1))
    w.disconnect("a")
    waiting = w.submit(PAIR)
    w.advance(80)

    assert state(w, A) is NodeState.UNREACHABLE
    assert w.phase(running) is JobPhase.RUNNING
    assert w.phase(waiting) is JobPhase.QUEUED


def test_the_end_of_an_older_stream_of_a_node_that_is_back_does_not_count() -> None:
    w = world()
    old = w.cluster.presence[A].session
    assert old is not None
    w.connect("a")
    w.turn(NodeDisconnected(node=A, session=old))

    assert state(w, A) is NodeState.READY


def test_the_older_stream_of_a_node_that_is_back_is_closed() -> None:
    w = world()
    old = w.cluster.presence[A].session
    w.connect("a")

    assert CloseSession(node=A, session=old or 0) in w.effects
    assert state(w, A) is NodeState.READY


def test_a_heartbeat_on_a_stream_that_was_closed_is_refused_and_keeps_nothing() -> None:
    w = world()
    old = w.cluster.presence[A].session
    w.advance(40)
    heartbeat = HeartbeatReceived(node=A, session=old, plan_revision=0)

    assert w.turn(heartbeat) == [Refused(cause=RefusalCause.CONFLICT, message="the stream is not open any more")]
    assert w.cluster.presence[A].last_seen_at == AT
    w.connect("a")
    assert w.turn(heartbeat, replace(heartbeat, session=w.cluster.presence[A].session))[1] == Noted()


def test_heartbeats_keep_the_lease() -> None:
    w = world()
    silent(w, NodeId("nobody"), 300)

    assert (state(w, A), state(w, B)) == (NodeState.READY, NodeState.READY)


def test_a_node_that_is_silent_past_its_lease_is_unreachable_and_its_stream_is_closed() -> None:
    w = world()
    session = w.cluster.presence[A].session
    w.advance(20)
    w.heartbeat("b")
    w.advance(10)

    assert state(w, A) is NodeState.UNREACHABLE
    assert w.effects == [CloseSession(node=A, session=session or 0), AnnounceStory(subject=node_subject(A))]


def test_the_lease_is_checked_in_time_after_many_heartbeats() -> None:
    w = world()
    for _ in range(7):
        w.advance(9)
        w.heartbeat("a")
        w.heartbeat("b")
    w.advance(29)
    assert state(w, A) is NodeState.READY
    w.advance(30)

    assert state(w, A) is NodeState.UNREACHABLE


def test_what_runs_on_a_node_that_is_silent_for_too_long_is_lost() -> None:
    w = world()
    job = w.running(PAIR)
    silent(w, A, 80)
    assert w.phase(job) is JobPhase.RUNNING

    silent(w, A, 10)

    assert state(w, A) is NodeState.LOST
    assert w.states(job) == [State.LOST, State.STOPPING]
    failure = w.attempt(job).failure
    assert failure is not None
    assert (failure.kind, str(failure)) == (FailureKind.NODE_LOST, "rank 0 on a: its node has been silent for 90 s")


def test_a_job_that_does_not_go_on_without_the_coordinator_has_failed_when_every_node_is_lost() -> None:
    w = world()
    job = w.running(replace(PAIR, on_disconnect=OnDisconnect.STOP))
    w.advance(90)

    assert w.states(job) == [State.LOST, State.LOST]
    assert w.phase(job) is JobPhase.FAILED


def test_a_job_that_was_being_stopped_when_its_node_was_lost_says_so() -> None:
    w = world()
    job = w.running(PAIR)
    w.stop(job)
    w.tell(job, 1, Stage.EXITED)
    silent(w, A, 90)

    assert w.states(job) == [State.LOST, State.STOPPED]
    assert str(w.attempt(job).failure) == "rank 0 on a: its node has been silent for 90 s"


def test_a_lost_node_that_comes_back_takes_new_jobs_once_it_has_ended_the_old_ones() -> None:
    w = world()
    job = w.running(PAIR)
    old = w.rank(job, 0).id
    silent(w, A, 90)
    w.tell(job, 1, Stage.EXITED)
    waiting = w.submit(PAIR)
    w.connect("a", reports=[report(old, Stage.RUNNING)])
    assert w.followers[A].goals == {old: Goal.STOP}
    assert w.phase(waiting) is JobPhase.QUEUED

    w.turn(ExecutionsReported(node=A, reports=(report(old, Stage.EXITED),)))

    assert w.phase(waiting) is JobPhase.PREPARING
    assert w.rank(job, 0).state is State.LOST


def test_a_lost_node_that_comes_back_with_nothing_takes_new_jobs_at_once() -> None:
    w = world()
    w.running(PAIR)
    w.advance(90)
    w.connect("a")
    w.connect("b")

    assert w.phase(w.submit(PAIR)) is JobPhase.PREPARING


def test_an_agent_that_still_runs_what_has_ended_for_the_coordinator_gets_nothing_new_meanwhile() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell_all(job, Stage.EXITED)
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.RUNNING)])

    assert w.cluster.placeable(A) == "is clearing away 1 execution of before"


def test_an_agent_that_reports_executions_of_nobody_gets_nothing_new_until_they_have_gone() -> None:
    w = World(("b", 1))
    strangers = [ExecutionId("x-1-0"), ExecutionId("x-1-1")]
    w.connect("a", inventory("a", 1), reports=[report(each, Stage.RUNNING) for each in strangers])
    job = w.submit(PAIR)
    assert w.cluster.placeable(A) == "is clearing away 2 executions of before"

    for each in strangers:
        w.turn(ExecutionsReported(node=A, reports=(report(each, Stage.STOPPED),)))

    assert w.phase(job) is JobPhase.PREPARING


def test_an_agent_that_was_away_tells_what_happened_meanwhile() -> None:
    w = world()
    job = w.running(PAIR)
    w.disconnect("a")
    w.advance(60)
    w.connect("b", reports=[report(w.rank(job, 1).id, Stage.RUNNING)])
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.EXITED)])

    assert w.states(job) == [State.SUCCEEDED, State.RUNNING]


@pytest.mark.parametrize("stages", [(), (Stage.PREPARING,)])
def test_an_agent_that_restarted_is_sent_what_it_had_only_begun(stages: tuple[Stage, ...]) -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell_all(job, *stages)
    w.connect("a")

    assert w.phase(job) is JobPhase.PREPARING
    assert w.last_plan("a").desired[0].assignment is not None


@pytest.mark.parametrize(
    "stages", [(Stage.PREPARED,), (Stage.PREPARED, Stage.ARMED), (Stage.PREPARED, Stage.ARMED, Stage.RUNNING)]
)
def test_what_an_agent_that_restarted_does_not_have_any_more_has_failed(stages: tuple[Stage, ...]) -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell_all(job, *stages)
    w.connect("a")

    assert w.states(job) == [State.FAILED, State.STOPPING]
    failure = w.attempt(job).failure
    assert failure is not None
    assert (failure.kind, str(failure)) == (
        FailureKind.AGENT_RESTARTED,
        "rank 0 on a: the agent restarted and does not have the execution any more",
    )


def test_what_was_being_stopped_and_is_not_there_any_more_has_stopped() -> None:
    w = world()
    job = w.running(PAIR)
    w.stop(job)
    w.connect("a")

    assert w.states(job) == [State.STOPPED, State.STOPPING]
    assert w.rank(job, 0).failure is None


def test_logs_of_ended_executions_that_the_agent_does_not_have_any_more_are_not_waited_for() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell_all(job, Stage.EXITED)
    w.connect("a")

    assert w.rank(job, 0).log_complete
    assert w.last_plan("a").desired == ()


def test_a_second_agent_of_the_same_name_is_refused_while_the_first_one_is_connected() -> None:
    w = world()
    before = w.store.load()

    assert w.connect("a", identity="somebody else") == Refused(
        cause=RefusalCause.CONFLICT,
        message="another agent is connected as node a from address-of-a; give each agent its own --name",
    )
    assert w.store.load() == before
    assert w.effects == []
    assert state(w, A) is NodeState.READY


def test_a_name_whose_agent_is_gone_can_be_taken_over() -> None:
    w = world()
    w.disconnect("a")

    assert w.connect("a", identity="somebody else") == Noted()
    assert w.cluster.nodes[A].identity == "somebody else"
    assert w.cluster.nodes[A].joined_at == AT


def test_after_a_restart_of_the_coordinator_nobody_is_lost_before_its_agent_had_time_to_come_back() -> None:
    w = world()
    job = w.running(replace(PAIR, on_disconnect=OnDisconnect.STOP))
    w.advance(29)
    w.restart()
    w.advance(89)
    assert w.phase(job) is JobPhase.RUNNING
    assert state(w, A) is NodeState.UNREACHABLE

    w.advance(1)

    assert w.phase(job) is JobPhase.FAILED


def test_after_a_restart_of_the_coordinator_what_agents_report_is_adopted() -> None:
    w = world()
    job = w.running(PAIR)
    w.restart()
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.RUNNING)])
    w.connect("b", reports=[report(w.rank(job, 1).id, Stage.RUNNING)])
    w.tell_all(job, Stage.EXITED)

    assert w.phase(job) is JobPhase.SUCCEEDED


def test_a_coordinator_that_slept_or_whose_clock_jumped_does_not_blame_its_nodes() -> None:
    w = world()
    job = w.running(replace(PAIR, on_disconnect=OnDisconnect.STOP))
    w.now += timedelta(hours=1)
    w.turn(TimePassed())
    assert w.phase(job) is JobPhase.RUNNING

    w.advance(90)

    assert w.phase(job) is JobPhase.FAILED


def test_heartbeats_that_waited_while_the_coordinator_was_busy_count() -> None:
    w = world()
    job = w.running(PAIR)
    w.now += timedelta(seconds=95)
    w.turn(*(HeartbeatReceived(node=node, plan_revision=9) for node in (A, B)), TimePassed())

    assert w.phase(job) is JobPhase.RUNNING
    assert state(w, A) is NodeState.READY


def test_a_node_that_comes_back_again_and_again_is_watched_once() -> None:
    w = world()
    for _ in range(20):
        w.connect("a")
        w.advance(1)
    wakes = 0
    end = w.now + timedelta(seconds=60)
    while (due := w.cluster.deadlines.next_at) is not None and due <= end:
        w.now = due
        w.turn(TimePassed())
        wakes += 1

    assert wakes <= 6


def test_news_of_an_inventory_are_kept_and_used() -> None:
    w = World(("a", 1))
    job = w.submit(spec(2, gpus=1), queue_anyway=True)
    w.change_inventory("a", gpus=(gpu("a", 0), gpu("a", 1)))

    assert w.phase(job) is JobPhase.PREPARING
    assert w.store.load().nodes[0].inventory.gpus == (gpu("a", 0), gpu("a", 1))


def test_gpus_with_problems_are_not_given() -> None:
    w = World(("a", 2))
    w.change_inventory("a", gpus=(gpu("a", 0, problems=("fell off the bus",)), gpu("a", 1)))

    assert w.rank(w.submit(spec(1, gpus=1)), 0).gpus == ("GPU-a-1",)


def test_news_of_a_node_that_never_joined_change_nothing() -> None:
    w = World()
    stranger = NodeId("stranger")
    w.turn(
        HeartbeatReceived(node=stranger, plan_revision=1),
        ExecutionsReported(node=stranger, reports=(report(ExecutionId("x-1-0"), Stage.EXITED),)),
        NodeDisconnected(node=stranger, session=1),
    )

    assert w.cluster.nodes == {}
    assert w.effects == []
