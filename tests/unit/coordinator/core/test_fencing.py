"""Two attempts never run at once: when what is silent is lost, and from when on another attempt may begin."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.answers import Noted, Refused
from coordinator.core.events import ExecutionsReported, RemovalRequested
from coordinator.core.records import Attempt
from muster.domain.gangs.fence import Witness
from muster.domain.gangs.plan import Goal, Stage
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, pass_time, report, spec

A, B, C, SPARE = (NodeId(name) for name in ("a", "b", "c", "d"))
GANG = spec(3, gpus=1, max_per_node=1, restarts=RestartPolicy(infrastructure=3))
ALONE = replace(GANG, roles=spec(1, gpus=1).roles)
STOPS = OnDisconnect.STOP
LONG = timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World(("a", 1), ("b", 1), ("c", 1), ("d", 1))


def stopped(world: World, job: JobId, rank: int, no_permit_for: timedelta | None) -> None:
    """A rank's agent confirms the end that was ordered."""
    world.tell(job, rank, Stage.EXITED, exit=Exit(code=143), no_permit_for=no_permit_for)


def lose_first_node(world: World, wanted: JobSpec = GANG) -> JobId:
    """A job of which rank 0's node has been silent until it was lost."""
    job = world.running(wanted)
    pass_time(world, 90, A)
    assert world.states(job)[0] is State.LOST
    return job


def newest(world: World, job: JobId) -> Attempt:
    return world.cluster.newest_attempt(job)


def test_the_agents_of_an_attempt_are_told_whom_to_ask(world: World) -> None:
    job = world.submit(GANG)

    fences = [
        world.followers[NodeId(node or "")].assignments[world.rank(job, rank).id].fence
        for rank, node in enumerate(world.seats(job))
    ]
    assert [[witness.node for witness in each.witnesses] for each in fences] == [[B, C], [A, C], [A, B]]
    assert fences[0].witnesses[0] == Witness(node=B, address="address-of-b:20000")
    assert len({each.key for each in fences}) == 1


def test_every_attempt_has_a_secret_of_its_own(world: World) -> None:
    first, second = world.submit(ALONE), world.submit(ALONE)

    keys = {
        world.followers[NodeId(world.seats(job)[0] or "")].assignments[world.rank(job, 0).id].fence.key
        for job in (first, second)
    }
    assert len(keys) == 2


def test_a_large_attempt_has_the_first_eight_other_nodes_as_witnesses() -> None:
    world = World(*((f"n{number}", 1) for number in range(12)))
    job = world.submit(replace(GANG, roles=spec(12, gpus=1).roles))

    def asked(rank: int) -> list[str]:
        node = NodeId(world.seats(job)[rank] or "")
        return [witness.node for witness in world.followers[node].assignments[world.rank(job, rank).id].fence.witnesses]

    assert asked(11) == [f"n{number}" for number in range(8)]
    assert asked(2) == [f"n{number}" for number in (0, 1, 3, 4, 5, 6, 7, 8)]


def test_what_is_silent_is_lost_when_its_job_says_so(world: World) -> None:
    job = world.running(replace(GANG, timeouts=Timeouts(lost_after=timedelta(minutes=5))))
    pass_time(world, 290, A)
    assert world.states(job) == [State.RUNNING] * 3

    pass_time(world, 10, A)
    assert world.states(job) == [State.LOST, State.STOPPING, State.STOPPING]


def test_nothing_is_lost_while_no_witness_is_in_contact(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 3600, A, B, C)

    assert world.states(job) == [State.RUNNING] * 3


def test_a_job_on_one_node_is_never_lost_unless_it_stops_there_by_itself(world: World) -> None:
    keeps, stops = world.running(ALONE), world.running(replace(ALONE, on_disconnect=STOPS))
    pass_time(world, 3600, A, B)

    assert (world.phase(keeps), world.attempt(keeps).number) == (JobPhase.RUNNING, 1)
    assert world.attempt(stops).number == 2
    assert world.seats(stops) == [C]


def test_a_job_that_somebody_stops_ends_although_its_node_stays_away(world: World) -> None:
    job = world.running(ALONE)
    world.stop(job)
    pass_time(world, 120, A)

    assert (world.states(job), world.phase(job).ended) == ([State.LOST], True)


def test_an_attempt_that_was_not_released_is_lost_like_any_other(world: World) -> None:
    job = world.submit(ALONE)
    world.tell(job, 0, Stage.PREPARED)
    pass_time(world, 120, A)

    assert world.attempt(job).number == 2


def test_nodes_that_come_back_one_after_the_other_do_not_blame_each_other(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 300, A, B, C)
    world.connect("b", reports=[report(world.rank(job, 1).id, Stage.RUNNING)])
    pass_time(world, 80, A, C)
    assert world.states(job) == [State.RUNNING] * 3

    pass_time(world, 10, A, C)
    assert world.states(job) == [State.LOST, State.STOPPING, State.LOST]


def test_a_witness_whose_stream_was_only_opened_anew_has_been_in_contact_all_the_time(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 60, A)
    for rank, node in ((1, "b"), (2, "c")):
        world.disconnect(node)
        world.connect(node, reports=[report(world.rank(job, rank).id, Stage.RUNNING)])
    pass_time(world, 30, A)

    assert world.states(job)[0] is State.LOST


def test_the_next_attempt_begins_when_a_witness_that_gave_no_permit_has_ended_its_part(world: World) -> None:
    job = lose_first_node(world)
    stopped(world, job, 1, LONG)
    assert newest(world, job).number == 1

    stopped(world, job, 2, LONG)
    assert (newest(world, job).number, newest(world, job).placed_at) == (2, world.now)
    assert world.seats(job) == [B, C, SPARE]


def test_it_waits_until_the_last_permit_that_a_witness_may_have_given_is_over(world: World) -> None:
    job = lose_first_node(world)
    stopped(world, job, 1, timedelta(seconds=10))
    stopped(world, job, 2, timedelta(seconds=5))

    assert newest(world, job).not_before == world.now + timedelta(seconds=15)
    pass_time(world, 10, A)
    assert newest(world, job).placed_at is None
    pass_time(world, 10, A)
    assert newest(world, job).placed_at is not None


def test_a_witness_that_does_not_say_may_have_given_a_permit_just_now(world: World) -> None:
    job = lose_first_node(world)
    stopped(world, job, 1, None)
    stopped(world, job, 2, None)

    assert newest(world, job).not_before == world.now + timedelta(seconds=25)


def test_a_witness_that_does_not_have_its_execution_any_more_may_have_given_one_just_now(world: World) -> None:
    job = lose_first_node(world)
    world.connect("b")
    world.connect("c")

    assert newest(world, job).not_before == world.now + timedelta(seconds=25)


def test_a_part_that_ended_well_is_no_proof(world: World) -> None:
    job = world.running(GANG)
    world.tell(job, 1, Stage.EXITED, no_permit_for=LONG)
    world.tell(job, 2, Stage.EXITED, no_permit_for=LONG)
    pass_time(world, 90, A)

    assert world.states(job) == [State.LOST, State.SUCCEEDED, State.SUCCEEDED]
    assert newest(world, job).number == 1
    assert world.cluster.jobs[job].gave_up == (
        "a may only be cut off and still run it, no other node can tell that it does not, "
        "and two attempts must never run at once"
    )


def test_a_part_that_ended_well_before_the_order_to_stop_came_is_no_proof(world: World) -> None:
    job = lose_first_node(world)
    for rank in (1, 2):
        world.tell(job, rank, Stage.EXITED, exit=Exit(code=0), no_permit_for=None)

    assert world.states(job) == [State.LOST, State.STOPPED, State.STOPPED]
    assert "a may only be cut off and still run it" in world.cluster.jobs[job].gave_up


def test_a_part_that_was_stopped_and_ended_with_exit_code_0_is_a_proof(world: World) -> None:
    job = lose_first_node(world)
    for rank in (1, 2):
        world.tell(job, rank, Stage.EXITED, exit=Exit(code=0), no_permit_for=LONG)

    assert newest(world, job).number == 2


def test_of_several_proofs_the_one_that_permits_the_earliest_begin_counts(world: World) -> None:
    job = world.running(replace(GANG, restarts=RestartPolicy(limit=1)))
    world.tell(job, 1, Stage.EXITED, exit=Exit(code=3), no_permit_for=LONG)
    pass_time(world, 80, A)
    stopped(world, job, 2, timedelta(seconds=5))
    pass_time(world, 10, A)

    assert (newest(world, job).number, newest(world, job).not_before) == (2, None)


def test_a_lost_node_that_is_back_and_has_ended_its_part_needs_no_proof(world: World) -> None:
    job = world.running(GANG)
    world.tell(job, 1, Stage.EXITED)
    pass_time(world, 90, A)
    ended = report(world.rank(job, 0).id, Stage.EXITED, exit=Exit(code=143))
    world.connect("a", reports=[report(world.rank(job, 0).id, Stage.RUNNING)])
    world.turn(ExecutionsReported(node=A, reports=(ended,)))
    world.tell(job, 2, Stage.EXITED)

    assert [member.state for member in world.cluster.gangs.members(AttemptId(job, 1))] == [
        State.LOST,
        State.SUCCEEDED,
        State.STOPPED,
    ]
    assert newest(world, job).number == 2


def test_a_lost_node_that_is_back_is_a_proof_for_another(world: World) -> None:
    pair = replace(GANG, roles=spec(2, gpus=1).roles)
    job = lose_first_node(world, pair)
    ended = report(world.rank(job, 0).id, Stage.EXITED, exit=Exit(code=143), no_permit_for=LONG)
    world.connect("a", reports=[ended])
    pass_time(world, 90, B)

    assert world.cluster.attempts[AttemptId(job, 1)].ended_at is not None
    assert newest(world, job).number == 2


def test_a_fence_is_kept_in_full_when_the_coordinator_starts_with_another_clock(world: World) -> None:
    job = lose_first_node(world)
    stopped(world, job, 1, None)
    stopped(world, job, 2, None)
    world.now += timedelta(days=1)
    world.restart()
    for node in "bcd":
        world.connect(node)
    pass_time(world, 20, A)
    assert newest(world, job).placed_at is None

    pass_time(world, 10, A)
    assert newest(world, job).placed_at is not None


def test_lost_nodes_are_no_proof_for_each_other(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 90, A, B)
    assert world.states(job) == [State.LOST, State.LOST, State.STOPPING]
    stopped(world, job, 2, LONG)

    assert newest(world, job).number == 2


def test_what_stops_by_itself_without_the_coordinator_needs_no_proof(world: World) -> None:
    job = world.running(replace(GANG, on_disconnect=STOPS))
    pass_time(world, 90, A, B, C)

    assert (newest(world, job).number, newest(world, job).not_before) == (2, None)


def test_a_failure_elsewhere_does_not_let_an_attempt_begin_beside_what_is_silent(world: World) -> None:
    job = world.running(replace(GANG, restarts=RestartPolicy(limit=1)))
    pass_time(world, 40, A)
    world.tell(job, 1, Stage.EXITED, exit=Exit(code=1), no_permit_for=LONG)
    stopped(world, job, 2, LONG)
    assert world.states(job) == [State.STOPPING, State.FAILED, State.STOPPED]

    pass_time(world, 50, A)
    assert newest(world, job).number == 2


def test_another_machine_of_the_same_name_proves_nothing(world: World) -> None:
    job = world.running(ALONE)
    pass_time(world, 60, A)
    world.disconnect("a") if world.cluster.presence[A].session is not None else None
    world.connect("a", identity="another machine")

    assert world.states(job) == [State.LOST]
    assert world.phase(job) is JobPhase.FAILED


def test_a_node_that_an_operator_removes_counts_as_ended(world: World) -> None:
    job = world.running(ALONE)
    pass_time(world, 600, A)

    assert world.turn(RemovalRequested(node=A)) == [Noted()]
    assert A not in world.cluster.nodes
    assert list(world.store.load().nodes) == [world.cluster.nodes[node] for node in (B, C, SPARE)]
    failure = world.cluster.attempts[AttemptId(job, 1)].failure
    assert failure is not None
    assert (failure.kind, failure.message) == (FailureKind.NODE_LOST, "its node was removed by an operator")
    assert (newest(world, job).number, world.seats(job)) == (2, [B])


def test_a_node_can_be_removed_after_its_gang_gave_it_up(world: World) -> None:
    job = world.running(GANG)
    world.tell(job, 1, Stage.EXITED, no_permit_for=LONG)
    pass_time(world, 90, A)
    world.turn(RemovalRequested(node=A))
    world.tell(job, 2, Stage.EXITED, exit=Exit(code=143))

    assert newest(world, job).number == 2


def test_a_removed_node_may_join_again_and_clears_away_what_it_still_runs(world: World) -> None:
    job = world.running(ALONE)
    old = world.rank(job, 0).id
    pass_time(world, 600, A)
    world.turn(RemovalRequested(node=A))
    world.connect("a", world.cluster.nodes[B].inventory, reports=[report(old, Stage.RUNNING)])

    assert world.cluster.placeable(A) == "is clearing away 1 execution of before"
    world.restart()


def test_a_node_that_is_there_is_not_removed(world: World) -> None:
    answers = world.turn(RemovalRequested(node=A), RemovalRequested(node=NodeId("nowhere")))

    assert [answer.message for answer in answers if isinstance(answer, Refused)] == [
        "node a is connected; stop its agent first (what runs there would run on)",
        "there is no node 'nowhere'; `muster nodes` lists them",
    ]


def test_a_lost_node_that_comes_back_keeps_what_it_ended_until_its_log_is_complete(world: World) -> None:
    job = lose_first_node(world)
    old = world.rank(job, 0).id
    world.connect("a", reports=[report(old, Stage.EXITED)])
    assert world.followers[A].goals == {old: Goal.STOP}

    world.turn(ExecutionsReported(node=A, reports=(report(old, Stage.EXITED, log_complete=True),)))
    world.advance(1)

    assert world.followers[A].goals == {}
    assert (world.rank(job, 0).state, world.rank(job, 0).log_complete) == (State.LOST, True)
