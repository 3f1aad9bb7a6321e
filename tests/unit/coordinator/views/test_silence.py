"""What clients are told while nodes are silent. The World begins at 09:00:00."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.views.explain import explain
from coordinator.views.jobs import job_view
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, pass_time, report, spec

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
GANG = spec(3, max_per_node=1, restarts=RestartPolicy(infrastructure=3))
REMOVE = "if that will never be, `muster nodes remove NODE` says that nothing runs there any more"


@pytest.fixture
def world() -> World:
    return World(("a", 0), ("b", 0), ("c", 0))


def why(world: World, job: JobId) -> str:
    return explain(world.cluster, job, world.now).summary


def test_of_a_node_that_is_cut_off_it_is_said_when_it_is_lost(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 40, B)

    assert why(world, job) == (
        "3 of 3 running, 0 succeeded; b (rank 1) is silent since 09:00:00 UTC: lost at 09:01:30 UTC unless heard before"
    )
    assert job_view(world.cluster, job).summary == why(world, job)
    assert job_view(world.cluster, job, whole=False).summary == "3 of 3 running, 0 succeeded"


def test_of_a_gang_that_is_cut_off_as_a_whole_it_is_said_that_it_may_go_on(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 600, A, B, C)

    assert why(world, job) == (
        "3 of 3 running, 0 succeeded; a, b, c (ranks 0, 1, 2) are silent since 09:00:00 UTC: no other node of the job "
        "is heard either, so it may be going on there without the coordinator. Muster waits until one of them is back; "
        + REMOVE
    )


def test_of_a_job_on_one_node_it_is_said_that_it_may_go_on_or_when_it_is_lost(world: World) -> None:
    alone = replace(GANG, roles=spec(1).roles)
    keeps, stops = world.running(alone), world.running(replace(alone, on_disconnect=OnDisconnect.STOP))
    assert world.seats(stops) == world.seats(keeps) == ["a"]
    pass_time(world, 60, A)

    assert why(world, keeps) == (
        "1 of 1 running, 0 succeeded; a (rank 0) is silent since 09:00:00 UTC: the job runs nowhere else, so it may be "
        "going on there without the coordinator. Muster waits until it is back; " + REMOVE
    )
    assert why(world, stops).endswith(
        "a (rank 0) is silent since 09:00:00 UTC: lost at 09:01:30 UTC unless heard before"
    )


def test_of_many_nodes_only_some_are_named() -> None:
    world = World(*((f"n{number}", 0) for number in range(7)))
    job = world.running(spec(7, max_per_node=1))
    pass_time(world, 60, *map(NodeId, world.cluster.nodes))

    assert "n0, n1, n2, n3, n4 and 2 more (ranks 0, 1, 2, 3, 4 and 2 more) are silent" in why(world, job)


def test_an_attempt_that_waits_for_a_fence_says_which(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 90, B)
    assert world.states(job)[1] is State.LOST
    for rank in (0, 2):
        world.tell(job, rank, Stage.FAILED, no_permit_for=timedelta(seconds=5))

    assert why(world, job) == (
        "attempt 2: not before 09:01:50 UTC, as rank 1 on b may run until then; "
        "the one before failed: rank 1 on b: its node has been silent for 90 s"
    )


def test_when_all_are_back_nothing_more_is_said(world: World) -> None:
    job = world.running(GANG)
    pass_time(world, 60, B)
    world.connect("b", reports=[report(world.rank(job, 1).id, Stage.RUNNING)])

    assert why(world, job) == "3 of 3 running, 0 succeeded"
