"""What is kept for the head of the queue stays kept while the coordinator is restarted, and while nodes are silent."""

from typing import Any

from coordinator.core.events import CordonRequested, HoldRequested
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.disconnect import DEFAULT_LOST_AFTER
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, pass_time, report, spec


def running(w: World, gpus: int, node: str, **fields: Any) -> JobId:
    """A job without a limit that runs on a node."""
    others = tuple(each for each in w.cluster.nodes if each != node)
    job = w.submit(spec(1, gpus=gpus, exclude_nodes=others, **fields))
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    return job


def come_back(w: World, node: str) -> None:
    """The agent of a node opens a stream again, with all that runs there."""
    w.connect(node, reports=[report(each, Stage.RUNNING) for each in w.cluster.load.used(NodeId(node)).executions])


def head(w: World) -> JobId | None:
    kept = w.cluster.load.reservation
    return None if kept is None else kept.job


def drained() -> tuple[World, JobId, JobId]:
    """The head waits for n1, where something runs on, and for n2, which is free; a small job waits behind it."""
    w = World(("n1", 4), ("n2", 4))
    running(w, 2, "n1")
    big, small = w.submit(spec(2, gpus=4)), w.submit(spec(1, gpus=1))
    assert (head(w), w.phase(small)) == (big, JobPhase.QUEUED)
    return w, big, small


def test_drained_seats_stay_kept_while_agents_come_back_one_by_one() -> None:
    w, big, small = drained()
    w.restart()
    come_back(w, "n2")
    assert (head(w), w.phase(small)) == (big, JobPhase.QUEUED)
    come_back(w, "n1")
    assert (head(w), w.phase(small)) == (big, JobPhase.QUEUED)


def test_drained_seats_stay_kept_while_another_node_of_the_head_is_silent_for_a_moment() -> None:
    w, big, small = drained()
    w.disconnect("n1")
    smaller = w.submit(spec(1))
    assert (head(w), w.phase(small), w.seats(smaller)) == (big, JobPhase.QUEUED, ["n2"])


def test_seats_are_kept_no_longer_once_a_node_does_not_come_back() -> None:
    w, _, small = drained()
    w.restart()
    come_back(w, "n2")
    for _ in range(1 + DEFAULT_LOST_AFTER.seconds // 10):
        w.advance(10)
        w.heartbeat("n2")
    assert (head(w), w.seats(small)) == (None, ["n2"])


def test_seats_are_kept_no_longer_on_a_node_that_is_cordoned() -> None:
    w, _, small = drained()
    w.turn(CordonRequested(node=NodeId("n1")))
    assert (head(w), w.seats(small)) == (None, ["n2"])


def two_large() -> tuple[World, JobId, JobId]:
    """The head is of project a; a job of b that comes before it now, though in no better tier, waits behind it."""
    w = World(("n1", 4), ("n2", 4), projects=("default", "a", "b"))
    for project in ("a", "b"):
        w.promise(project, quota=8)
    running(w, 2, "n2", project="default")
    of_b = running(w, 2, "n1", project="b")
    first = w.submit(spec(2, gpus=4, project="b"))
    kept = w.submit(spec(2, gpus=4, project="a"))
    assert head(w) == kept
    w.tell_all(of_b, Stage.EXITED, exit=Exit(code=0), log_complete=True)
    assert head(w) == kept
    return w, kept, first


def test_the_head_is_the_same_after_a_restart_though_a_job_of_another_project_comes_before_it() -> None:
    w, kept, _ = two_large()
    w.restart()
    for node in ("n1", "n2"):
        come_back(w, node)
        assert head(w) == kept


def test_no_record_tells_of_seats_for_a_job_that_waits_for_none() -> None:
    w, kept, first = two_large()
    w.turn(HoldRequested(job=kept))
    assert head(w) == first
    assert [job for job, attempt in w.cluster.attempts.items() if attempt.reserved] == [
        w.cluster.jobs[first].attempt_id
    ]
    w.restart()
    assert head(w) == first
    w.stop(first)
    pass_time(w, 1)
    assert not any(attempt.reserved for attempt in w.cluster.attempts.values())
