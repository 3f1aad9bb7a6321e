"""Nodes that an operator wants nothing new on: what runs there goes on, or begins anew elsewhere."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from coordinator.core.answers import Noted, RefusalCause, Refused
from coordinator.core.attempts.restarts import GiveUp, Restart, verdict
from coordinator.core.events import CordonRequested, RemovalRequested, UncordonRequested
from coordinator.views.explain import explain
from coordinator.views.nodes import node_view
from muster.domain.fleet.node import Cordon
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import AT, World, spec

A, B = NodeId("a"), NodeId("b")


@pytest.fixture
def world() -> World:
    return World(("a", 0), ("b", 0))


def cordon(world: World, node: NodeId, reason: str = "", *, restart_jobs: bool = False) -> None:
    assert world.turn(CordonRequested(node=node, reason=reason, restart_jobs=restart_jobs)) == [Noted()]


def stopped(world: World, job: JobId, ranks: Sequence[int]) -> None:
    """The agents say that nothing of it runs any more."""
    for rank in ranks:
        world.tell(job, rank, Stage.EXITED, exit=Exit(code=143))


def test_nothing_new_is_placed_on_a_cordoned_node_and_the_reason_is_told(world: World) -> None:
    cordon(world, A, "new memory")
    job = world.submit(spec(1))
    waiting = world.submit(spec(2, max_per_node=1))

    assert world.seats(job) == ["b"]
    told = {refusal.node: refusal.reason for refusal in explain(world.cluster, waiting, world.now).refusals}
    assert told[A] == "is cordoned: new memory"


def test_what_runs_on_a_cordoned_node_goes_on(world: World) -> None:
    job = world.running(spec(2, max_per_node=1))
    cordon(world, A)

    assert world.phase(job) is JobPhase.RUNNING


def test_a_gang_that_is_placed_already_is_let_go_on_a_cordoned_node(world: World) -> None:
    job = world.submit(spec(2, max_per_node=1))
    cordon(world, A)
    world.tell_all(job, Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)

    assert world.phase(job) is JobPhase.RUNNING


def test_jobs_that_wait_are_placed_when_a_node_takes_jobs_again(world: World) -> None:
    cordon(world, A)
    job = world.submit(spec(2, max_per_node=1))
    assert world.phase(job) is JobPhase.QUEUED

    assert world.turn(UncordonRequested(node=A)) == [Noted()]

    assert world.seats(job) == ["a", "b"]


def test_a_cordon_is_kept_over_restarts_of_agent_and_coordinator(world: World) -> None:
    cordon(world, A, "new memory")
    world.connect("a")
    world.restart()
    world.connect("a")

    assert node_view(world.cluster, A).cordon == Cordon(since=AT, reason="new memory")


def test_a_cordon_stands_since_it_was_first_said_with_the_newest_reason(world: World) -> None:
    cordon(world, A, "new memory")
    world.advance(5)
    cordon(world, A)
    assert world.cluster.nodes[A].cordon == Cordon(since=AT, reason="new memory")

    cordon(world, A, "scrapped")
    assert world.cluster.nodes[A].cordon == Cordon(since=AT, reason="scrapped")


def test_jobs_of_a_drained_node_begin_anew_elsewhere_even_those_without_restarts(world: World) -> None:
    job = world.running(spec(1))
    other = world.running(spec(1))
    node, beside = world.seat(job), world.seat(other)
    cordon(world, node, restart_jobs=True)
    assert world.phase(job) is JobPhase.STOPPING

    stopped(world, job, [0])

    elsewhere = "b" if node == "a" else "a"
    assert (world.attempt(job).number, world.seats(job)) == (2, [elsewhere])
    first = world.cluster.attempts[AttemptId(job, 1)].failure
    assert str(first) == f"rank 0 on {node}: its node is drained, so the job begins anew elsewhere"
    assert (beside == node) == (world.phase(other) is JobPhase.STOPPING)


def test_the_whole_gang_moves_when_one_of_its_nodes_is_drained(world: World) -> None:
    job = world.running(spec(2, max_per_node=1))
    world.connect("c", world.cluster.nodes[B].inventory)
    cordon(world, A, restart_jobs=True)
    stopped(world, job, [0, 1])

    assert sorted(filter(None, world.seats(job))) == ["b", "c"]


def test_draining_twice_starts_again_once(world: World) -> None:
    job = world.running(spec(1))
    node = world.seat(job)
    cordon(world, node, restart_jobs=True)
    cordon(world, node, restart_jobs=True)
    stopped(world, job, [0])
    cordon(world, node, restart_jobs=True)

    assert (world.attempt(job).number, world.phase(job)) == (2, JobPhase.PREPARING)


def test_a_job_that_its_user_has_stopped_does_not_begin_anew(world: World) -> None:
    job = world.running(spec(1))
    world.stop(job)
    cordon(world, world.seat(job), restart_jobs=True)
    stopped(world, job, [0])

    assert (world.attempt(job).number, world.phase(job)) == (1, JobPhase.STOPPED)


def test_a_cordoned_node_can_be_removed_and_joins_again_without_the_cordon(world: World) -> None:
    cordon(world, A)
    world.disconnect("a")
    assert world.turn(RemovalRequested(node=A)) == [Noted()]
    world.connect("a", world.cluster.nodes[B].inventory)

    assert world.cluster.nodes[A].cordon is None


@pytest.mark.parametrize("event", [CordonRequested(node=NodeId("x")), UncordonRequested(node=NodeId("x"))])
def test_a_node_that_nobody_knows_cannot_be_cordoned(world: World, event: CordonRequested | UncordonRequested) -> None:
    [answer] = world.turn(event)
    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.UNKNOWN


DRAINED = Failure(kind=FailureKind.DRAINED, message="")
LOST = Failure(kind=FailureKind.NODE_LOST, message="")


def test_drained_attempts_are_not_counted_against_the_limits_of_a_job() -> None:
    policy = RestartPolicy(infrastructure=1)

    assert verdict(RestartPolicy(), [DRAINED]) == Restart(pause=timedelta())
    assert verdict(policy, [DRAINED, DRAINED, LOST]) == Restart(pause=timedelta())
    assert isinstance(verdict(policy, [LOST, DRAINED, LOST]), GiveUp)


def test_queued_jobs_have_nothing_to_do_with_a_drain(world: World) -> None:
    job = world.submit(spec(3, max_per_node=1), queue_anyway=True)
    cordon(world, A, restart_jobs=True)

    assert (world.phase(job), world.rank(job, 0).state) == (JobPhase.QUEUED, State.QUEUED)
