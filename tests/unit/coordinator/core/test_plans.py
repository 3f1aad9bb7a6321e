"""What each node is told: as a change of what it was told before, or as a whole."""

from datetime import timedelta

from coordinator.core.effects import AnnounceJob, SendPlan
from coordinator.core.turn.fencing import fence
from coordinator.core.turn.turn import DISMISSED_WITHIN
from coordinator.views.placeholders import early_values
from muster.domain.gangs.plan import Assignment, Desired, Goal, Plan, Stage
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.job import Network, Packing, Timeouts
from tests.builders import World, inventory, report, role, spec

A, B = NodeId("a"), NodeId("b")
PAIR = spec(2, gpus=1)


def world() -> World:
    return World(("a", 1), ("b", 1))


def test_a_node_that_connects_gets_its_whole_plan() -> None:
    w = World(("a", 1))

    assert w.followers[A].plans == [Plan(revision=1)]


def test_what_is_placed_comes_with_everything_that_is_needed_to_prepare_it() -> None:
    w = world()
    wanted = spec(roles=(role(1, 1, name="master"), role(1, 1)), timeouts=Timeouts(grace=timedelta(seconds=3)))
    job = w.submit(wanted)

    assert w.last_plan("b") == Plan(
        revision=2,
        base=1,
        desired=(
            Desired(
                execution=w.rank(job, 1).id,
                goal=Goal.PREPARE,
                assignment=Assignment(
                    execution=w.rank(job, 1).id,
                    job=job,
                    job_name="train",
                    attempt=1,
                    rank=1,
                    world_size=2,
                    local_rank=0,
                    local_world_size=1,
                    node_rank=1,
                    node_count=2,
                    role=wanted.roles[1],
                    network=Network.HOST,
                    gpus=(GpuUuid("GPU-b-0"),),
                    grace=timedelta(seconds=3),
                    fence=fence(w.cluster, AttemptId(job, 1), (NodeId("a"), NodeId("b")), NodeId("b")),
                ),
            ),
        ),
    )


def test_ranks_are_counted_on_each_node_and_nodes_in_rank_order() -> None:
    w = World(("a", 0), ("b", 0), ("c", 0))
    job = w.submit(spec(5, packing=Packing.SPREAD))
    assert w.seats(job) == ["a", "a", "b", "b", "c"]

    assignments = {
        rank: w.followers[w.rank(job, rank).node or A].assignments[w.rank(job, rank).id] for rank in range(5)
    }

    seatings = [(each.local_rank, each.local_world_size, each.node_rank) for each in assignments.values()]
    assert seatings == [(0, 2, 0), (1, 2, 0), (0, 2, 1), (1, 2, 1), (0, 1, 2)]
    assert {each.node_count for each in assignments.values()} == {3}


def test_executions_are_counted_in_their_roles() -> None:
    w = World(("a", 0))
    job = w.submit(spec(roles=(role(1, name="head"), role(3, name="worker"))))
    told = [w.followers[A].assignments[w.rank(job, rank).id] for rank in range(4)]
    assert [(each.role_rank, each.role_size) for each in told] == [(0, 1), (0, 3), (1, 3), (2, 3)]
    assert [each.early_values.fill("{{muster:name}} {{muster:rank}}") for each in told[1:3]] == [
        "worker-0 1",
        "worker-1 2",
    ]
    assert [each.early_values for each in told] == [
        early_values(w.cluster.jobs[job], w.rank(job, rank)) for rank in range(4)
    ]


def test_the_order_to_arm_brings_the_roster_and_the_order_to_run_does_not_repeat_it() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell_all(job, Stage.PREPARED)
    arm = w.last_plan("a")
    w.tell_all(job, Stage.ARMED)
    run = w.last_plan("a")

    assert arm.desired == (Desired(execution=w.rank(job, 0).id, goal=Goal.ARM),)
    assert [len(roster.members) for roster in arm.rosters] == [2]
    assert run.desired == (Desired(execution=w.rank(job, 0).id, goal=Goal.RUN),)
    assert run.rosters == ()


def test_a_node_is_told_of_its_own_executions_only() -> None:
    w = world()
    job = w.submit(PAIR)

    assert [list(w.followers[node].goals) for node in (A, B)] == [[w.rank(job, 0).id], [w.rank(job, 1).id]]


def test_a_change_builds_on_the_plan_before() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell_all(job, Stage.EXITED)

    plans = w.followers[A].plans
    assert [plan.revision for plan in plans] == list(range(1, len(plans) + 1))
    assert [plan.base for plan in plans] == list(range(len(plans)))


def test_a_report_that_an_order_was_followed_needs_no_answer() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell(job, 0, Stage.PREPARING)
    w.tell(job, 0, Stage.PREPARED)

    assert [effect for effect in w.effects if isinstance(effect, SendPlan)] == []
    assert [plan.revision for plan in w.followers[A].plans] == [1, 2]


def test_several_changes_of_one_turn_are_one_plan() -> None:
    w = World(("a", 4))
    before = len(w.followers[A].plans)
    w.turn(w.submission(spec(2, gpus=1)), w.submission(spec(2, gpus=1)))

    assert len(w.followers[A].plans) == before + 1
    assert len(w.last_plan("a").desired) == 4


def test_nothing_is_ordered_of_an_execution_that_ended_well() -> None:
    w = world()
    job = w.running(PAIR)
    plans_before = len(w.followers[A].plans)
    w.tell(job, 0, Stage.EXITED)
    assert len(w.followers[A].plans) == plans_before

    execution = w.rank(job, 0).id
    w.connect(A, reports=[report(execution, Stage.EXITED)])
    assert w.followers[A].goals == {execution: Goal.STOP}


def test_ended_executions_stay_listed_until_their_log_is_complete() -> None:
    w = world()
    job = w.running(PAIR)
    execution = w.rank(job, 0).id
    w.tell_all(job, Stage.EXITED)
    assert list(w.followers[A].goals) == [execution]

    w.tell(job, 0, Stage.EXITED, log_complete=True)
    w.advance(1)

    assert w.last_plan("a").removed == (execution,)
    assert w.followers[A].goals == {}


def test_nodes_whose_executions_end_one_after_the_other_are_told_at_once_what_to_clear_away() -> None:
    w = world()
    job = w.running(PAIR)
    executions = tuple(w.rank(job, rank).id for rank in range(2))
    w.tell(job, 0, Stage.EXITED, log_complete=True)
    w.advance(0.03)
    w.tell(job, 1, Stage.EXITED, log_complete=True)
    assert w.effects == [AnnounceJob(job=job)]

    w.advance(DISMISSED_WITHIN.total_seconds())

    sends = [effect for effect in w.effects if isinstance(effect, SendPlan)]
    assert [(send.node, send.plan.removed) for send in sends] == [(A, executions[:1]), (B, executions[1:])]


def test_what_a_node_may_clear_away_it_is_told_with_its_next_order() -> None:
    w = world()
    ended = w.running(PAIR)
    executions = [w.rank(ended, rank).id for rank in range(2)]
    w.tell_all(ended, Stage.EXITED, log_complete=True)
    following = w.submit(PAIR)

    for node, rank in (("a", 0), ("b", 1)):
        plan = w.last_plan(node)
        assert plan.removed == (executions[rank],)
        assert [line.execution for line in plan.desired] == [w.rank(following, rank).id]

    told = len(w.followers[A].plans)
    w.advance(1)
    assert len(w.followers[A].plans) == told


def test_a_node_that_comes_back_is_told_by_its_whole_plan_alone_what_to_clear_away() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell_all(job, Stage.EXITED, log_complete=True)
    w.disconnect("a")
    w.advance(1)
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.EXITED, log_complete=True)])
    w.advance(1)

    assert w.last_plan("a") == Plan(revision=w.followers[A].revision)


def test_a_log_that_is_complete_before_the_end_is_known_does_not_end_anything() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 0, Stage.RUNNING, log_complete=True)

    assert w.followers[A].goals == {w.rank(job, 0).id: Goal.RUN}


def test_a_node_that_is_away_is_told_everything_when_it_is_back() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell_all(job, Stage.PREPARED)
    w.disconnect("a")
    w.stop(job)
    assert [effect.node for effect in w.effects if isinstance(effect, SendPlan)] == ["b"]
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.PREPARED)])

    plan = w.last_plan("a")
    assert (plan.base, [(line.goal, line.assignment is not None) for line in plan.desired]) == (0, [(Goal.STOP, True)])


def test_whole_plans_bring_the_rosters_of_what_is_armed_or_runs() -> None:
    w = world()
    job = w.running(PAIR)
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.RUNNING)])

    assert [(roster.job, roster.attempt) for roster in w.last_plan("a").rosters] == [(job, 1)]


def test_a_node_that_missed_a_plan_gets_the_whole_one_after_its_next_but_one_heartbeat() -> None:
    w = world()
    w.undelivered.add(A)
    job = w.submit(PAIR)
    applied = w.followers[A].revision
    w.heartbeat("a", applied)
    w.undelivered.clear()
    w.heartbeat("a", applied)

    assert w.last_plan("a").base == 0
    assert w.followers[A].goals == {w.rank(job, 0).id: Goal.PREPARE}


def test_a_plan_that_is_still_on_its_way_when_a_heartbeat_comes_is_not_sent_again() -> None:
    w = world()
    before = w.followers[A].revision
    w.submit(PAIR)
    w.heartbeat("a", before)

    assert w.effects == []


def test_heartbeats_of_a_node_that_has_all_plans_are_answered_with_none() -> None:
    w = world()
    w.running(PAIR)
    for _ in range(3):
        w.heartbeat("a")
        assert w.effects == []


def test_revisions_begin_anew_with_a_new_coordinator_and_the_agents_follow() -> None:
    w = world()
    job = w.running(PAIR)
    w.restart()
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.RUNNING)])

    assert (w.last_plan("a").revision, w.last_plan("a").base) == (1, 0)
    assert w.followers[A].revision == 1


def test_what_nobody_wants_any_more_is_not_in_the_whole_plan() -> None:
    w = World()
    w.connect("a", inventory("a", 1), reports=[report(ExecutionId("x-1-0"), Stage.RUNNING)])

    assert w.last_plan("a").desired == ()
