"""Nodes with taints: who is placed there, who rather elsewhere, and what has to go."""

from datetime import timedelta
from typing import Any

import pytest

from coordinator.core.answers import Answer, Noted, RefusalCause, Refused
from coordinator.core.events import RemovalRequested, TaintsRequested
from coordinator.core.notes import Noticed
from coordinator.views.explain import explain
from coordinator.views.nodes import node_view
from muster.domain.event import NodeEvent
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.job import JobSpec, Packing
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.taint import MOST_TAINTS, NodeTaint, Taint, TaintName
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from tests.builders import AT, World, pass_time, spec

A, B = NodeId("a"), NodeId("b")
TEAM = Taint(key="team", value="vision", effect=TaintEffect.NO_SCHEDULE)
SLOW = Taint(key="slow", effect=TaintEffect.PREFER_NO_SCHEDULE)
BAD = Taint(key="gpu", value="bad", effect=TaintEffect.NO_EXECUTE)
FOR_A_WHILE = Toleration(key="gpu", value="bad", effect=TaintEffect.NO_EXECUTE, seconds=30)
FOR_EVER = Toleration(key="gpu", operator=TolerationOperator.EXISTS)


@pytest.fixture
def world() -> World:
    return World(("a", 4), ("b", 4))


def taint(world: World, node: NodeId, *given: Taint, removed: tuple[TaintName, ...] = (), after: float = 0) -> Answer:
    event = TaintsRequested(node=node, given=given, removed=removed, after=timedelta(seconds=after))
    (answer,) = world.turn(event)
    return answer


def whole(**fields: Any) -> JobSpec:
    """A job of one whole node."""
    return spec(1, gpus=4, **fields)


def stopped(world: World, job: JobId, *ranks: int) -> None:
    """The agents say that nothing of it runs any more."""
    for rank in ranks:
        world.tell(job, rank, Stage.EXITED, exit=Exit(code=143))


def story(world: World, node: NodeId) -> list[tuple[str, str]]:
    events = (note.event for note in world.notes if isinstance(note, Noticed))
    return [(event.kind, event.text) for event in events if isinstance(event, NodeEvent) and event.node == node]


def why(world: World, job: JobId, node: NodeId) -> str:
    told = {refusal.node: refusal.reason for refusal in explain(world.cluster, job, world.now).refusals}
    return told[node]


def test_only_jobs_that_tolerate_a_taint_are_placed_there(world: World) -> None:
    assert taint(world, A, TEAM) == Noted()
    taint(world, B, TEAM)
    other = world.submit(whole(), queue_anyway=True)
    ours = world.submit(whole(tolerations=(Toleration(key="team", value="vision"),)))

    assert (world.seats(other), world.seats(ours)) == ([None], ["a"])
    assert why(world, other, B) == "has the taint team=vision:NoSchedule, which the job does not tolerate"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        (Toleration(key="team", value="vision"), True),
        (Toleration(key="team", value="speech"), False),
        (Toleration(key="team"), False),
        (Toleration(key="slow", value="vision"), False),
        (Toleration(key="team", operator=TolerationOperator.EXISTS), True),
        (Toleration(operator=TolerationOperator.EXISTS), True),
        (Toleration(key="team", value="vision", effect=TaintEffect.NO_SCHEDULE), True),
        (Toleration(key="team", value="vision", effect=TaintEffect.NO_EXECUTE), False),
    ],
)
def test_a_toleration_is_about_taints_of_its_key_value_and_effect(
    world: World, toleration: Toleration, fits: bool
) -> None:
    taint(world, A, TEAM)
    taint(world, B, TEAM)
    job = world.submit(whole(tolerations=(toleration,)), queue_anyway=True)

    assert world.seats(job) == (["a"] if fits else [None])


def test_what_runs_goes_on_beside_a_taint_that_is_about_placing_alone(world: World) -> None:
    job = world.running(whole())
    taint(world, A, TEAM, SLOW)

    assert world.phase(job) is JobPhase.RUNNING


def test_jobs_that_wait_are_placed_when_a_taint_is_taken_away(world: World) -> None:
    taint(world, A, TEAM)
    taint(world, B, TEAM)
    job = world.submit(whole(), queue_anyway=True)
    taint(world, B, removed=(TaintName(key="team"),))

    assert world.seats(job) == ["b"]


def test_n4_nodes_that_are_rather_left_alone_are_taken_last(world: World) -> None:
    """Scenario N4: one node has a taint that is only a preference."""
    taint(world, A, SLOW)

    assert [world.seats(world.submit(whole())) for _ in range(2)] == [["b"], ["a"]]


def test_who_tolerates_it_is_placed_as_if_the_taint_were_not_there(world: World) -> None:
    taint(world, A, SLOW)

    assert world.seats(world.submit(whole(tolerations=(Toleration(key="slow"),)))) == ["a"]


@pytest.mark.parametrize("packing", Packing)
def test_a_gang_fills_the_nodes_it_likes_before_it_takes_others_however_it_is_packed(
    world: World, packing: Packing
) -> None:
    world.connect("c", world.cluster.nodes[A].inventory)
    taint(world, A, SLOW)
    job = world.submit(spec(5, gpus=2, packing=packing))

    assert sorted(map(str, world.seats(job))) == ["a", "b", "b", "c", "c"]


def test_two_taints_count_for_more_than_one(world: World) -> None:
    taint(world, A, SLOW, Taint(key="old", effect=TaintEffect.PREFER_NO_SCHEDULE))
    taint(world, B, SLOW)

    assert world.seats(world.submit(whole())) == ["b"]


def test_n5_a_gang_goes_when_the_time_of_a_taint_is_over_and_it_is_not_counted(world: World) -> None:
    """Scenario N5: a node with a gang gets a taint that ends what runs after some time."""
    job = world.running(spec(2, gpus=4))
    world.connect("c", world.cluster.nodes[A].inventory)
    taint(world, A, BAD, after=60)
    pass_time(world, 50)
    assert world.phase(job) is JobPhase.RUNNING

    pass_time(world, 10)
    assert world.phase(job) is JobPhase.STOPPING
    stopped(world, job, 0, 1)

    assert sorted(map(str, world.seats(job))) == ["b", "c"]
    first = world.cluster.attempts[AttemptId(job, 1)].failure
    assert first is not None
    assert first.kind is FailureKind.DRAINED
    assert str(first) == "rank 0 on a: its node has the taint gpu=bad:NoExecute, so the job begins anew elsewhere"
    assert story(world, A)[-2:] == [("tainted", "gpu=bad:NoExecute"), ("draining", "taint gpu=bad:NoExecute")]


def test_a_taint_without_a_time_ends_what_runs_at_once(world: World) -> None:
    job = world.running(whole())
    taint(world, A, BAD)

    assert world.phase(job) is JobPhase.STOPPING


def test_a_toleration_for_some_time_lets_the_job_stay_for_so_much_longer(world: World) -> None:
    job = world.running(whole(tolerations=(FOR_A_WHILE,)))
    taint(world, A, BAD, after=60)

    pass_time(world, 80)
    assert world.phase(job) is JobPhase.RUNNING
    pass_time(world, 10)
    assert world.phase(job) is JobPhase.STOPPING


def test_a_job_that_tolerates_a_taint_for_some_time_is_not_placed_there(world: World) -> None:
    taint(world, A, BAD)
    taint(world, B, BAD)
    job = world.submit(whole(tolerations=(FOR_A_WHILE,)), queue_anyway=True)

    assert world.seats(job) == [None]
    assert why(world, job, A) == (
        "has the taint gpu=bad:NoExecute, which the job tolerates only where it runs already (tolerations[].seconds)"
    )


def test_the_toleration_that_lasts_longest_counts(world: World) -> None:
    job = world.running(whole(tolerations=(FOR_A_WHILE, FOR_EVER)))
    taint(world, A, BAD)

    pass_time(world, 3600)
    assert world.phase(job) is JobPhase.RUNNING


def test_each_job_of_a_node_goes_at_its_own_time(world: World) -> None:
    soon, later, never = (
        world.running(spec(1, gpus=1, tolerations=tolerations)) for tolerations in ((), (FOR_A_WHILE,), (FOR_EVER,))
    )
    assert {world.seat(job) for job in (soon, later, never)} == {"a"}
    taint(world, A, BAD, after=10)

    pass_time(world, 10)
    assert [world.phase(job) for job in (soon, later, never)] == [
        JobPhase.STOPPING,
        JobPhase.RUNNING,
        JobPhase.RUNNING,
    ]
    pass_time(world, 30)
    assert [world.phase(job) for job in (later, never)] == [JobPhase.STOPPING, JobPhase.RUNNING]


def test_a_taint_that_is_taken_away_in_time_ends_nothing(world: World) -> None:
    job = world.running(whole())
    taint(world, A, BAD, after=60)
    pass_time(world, 30)
    taint(world, A, removed=(TaintName(key="gpu", effect=TaintEffect.NO_EXECUTE),))

    pass_time(world, 3600)
    assert world.phase(job) is JobPhase.RUNNING


def test_the_time_of_a_taint_goes_on_over_restarts_of_agent_and_coordinator(world: World) -> None:
    job = world.running(whole())
    taint(world, A, BAD, after=60)
    pass_time(world, 20)
    world.restart()
    pass_time(world, 30)
    assert world.attempt(job).failure is None

    pass_time(world, 10)
    failure = world.attempt(job).failure
    assert failure is not None
    assert failure.kind is FailureKind.DRAINED


def test_what_is_overdue_when_the_coordinator_comes_back_goes_at_once(world: World) -> None:
    job = world.running(whole())
    taint(world, A, BAD, after=60)
    world.now += timedelta(hours=1)
    world.restart()
    world.advance(0)

    failure = world.attempt(job).failure
    assert failure is not None
    assert failure.kind is FailureKind.DRAINED


def test_a_clock_that_was_ahead_does_not_keep_jobs_for_ever(world: World) -> None:
    job = world.running(whole())
    taint(world, A, BAD, after=60)
    world.now -= timedelta(days=10)
    world.restart()
    pass_time(world, 60)

    failure = world.attempt(job).failure
    assert failure is not None
    assert failure.kind is FailureKind.DRAINED


def test_taints_are_kept_over_restarts_of_agent_and_coordinator(world: World) -> None:
    taint(world, A, TEAM)
    world.connect("a")
    world.restart()
    world.connect("a")

    assert node_view(world.cluster, A).taints == (NodeTaint(taint=TEAM, since=AT),)


def test_a_node_that_joins_anew_after_it_was_removed_has_no_taints(world: World) -> None:
    taint(world, A, TEAM)
    world.disconnect("a")
    world.turn(RemovalRequested(node=A))
    world.connect("a", world.cluster.nodes[B].inventory)

    assert world.cluster.nodes[A].taints == ()


def test_a_taint_that_is_given_again_stands_since_it_was_first_given(world: World) -> None:
    taint(world, A, BAD, after=60)
    pass_time(world, 30)
    taint(world, A, BAD, after=60)
    assert world.cluster.nodes[A].taints == (NodeTaint(taint=BAD, since=AT, after=timedelta(seconds=60)),)

    taint(world, A, BAD, after=90)
    (changed,) = world.cluster.nodes[A].taints
    assert (changed.since, changed.after) == (AT + timedelta(seconds=30), timedelta(seconds=90))
    assert [kind for kind, _ in story(world, A)] == ["joined", "tainted", "tainted"]


def test_a_node_has_one_value_for_a_key_and_an_effect_and_shows_them_in_order(world: World) -> None:
    hard = Taint(key="gpu", value="bad", effect=TaintEffect.NO_SCHEDULE)
    taint(world, A, TEAM, BAD, hard)
    taint(world, A, Taint(key="gpu", value="worse", effect=TaintEffect.NO_SCHEDULE))

    told = [str(each.taint) for each in world.cluster.nodes[A].taints]
    assert told == ["gpu=bad:NoExecute", "gpu=worse:NoSchedule", "team=vision:NoSchedule"]

    taint(world, A, removed=(TaintName(key="gpu"),))
    assert [each.taint for each in world.cluster.nodes[A].taints] == [TEAM]


def test_a_node_has_so_many_taints_at_the_most(world: World) -> None:
    many = [Taint(key=f"k{number}", effect=TaintEffect.NO_SCHEDULE) for number in range(MOST_TAINTS + 1)]

    assert taint(world, A, *many[:-1]) == Noted()
    assert taint(world, A, *many) == Refused(
        cause=RefusalCause.INVALID, message="node a would have 17 taints; 16 are the most"
    )
    assert taint(world, A, many[-1], removed=(TaintName(key="k0"),)) == Noted()


def test_there_is_no_taint_for_a_node_that_is_not_known(world: World) -> None:
    answer = taint(world, NodeId("nowhere"), TEAM)

    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.UNKNOWN


def test_a_job_that_no_node_would_take_because_of_taints_is_refused_at_the_submit(world: World) -> None:
    taint(world, A, TEAM)
    taint(world, B, TEAM)

    answer = world.try_submit(whole())
    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.IMPOSSIBLE
    assert {refusal.reason for refusal in answer.refusals} == {
        "has the taint team=vision:NoSchedule, which the job does not tolerate"
    }


def test_what_is_kept_for_a_job_is_given_up_when_its_node_is_tainted(world: World) -> None:
    on_a, on_b = world.running(whole()), world.running(whole())
    assert (world.seats(on_a), world.seats(on_b)) == (["a"], ["b"])
    gang = world.submit(spec(2, gpus=4))
    taint(world, A, TEAM)
    world.connect("c", world.cluster.nodes[A].inventory)
    world.tell(on_a, 0, Stage.EXITED, exit=Exit(code=0))
    assert world.seats(gang) == [None, None]

    world.tell(on_b, 0, Stage.EXITED, exit=Exit(code=0))
    assert world.seats(gang) == ["b", "c"]
