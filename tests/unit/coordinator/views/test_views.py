"""What clients see."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from coordinator.core.causes import EventCause
from coordinator.core.cluster.job_index import Among
from coordinator.core.events import StopRequested
from coordinator.core.records import Job
from coordinator.views.explain import explain
from coordinator.views.jobs import job_view, jobs_page, resolve, unaccepted_view
from coordinator.views.nodes import node_view, node_views
from coordinator.views.summary import summarise
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.fleet.node import NodeState
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.explanation import Awaited
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase, State, SuccessRule
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.view import Transition
from tests.builders import AT, GIB, World, spec

PAIR = spec(2, gpus=1)


def world() -> World:
    return World(("a", 1), ("b", 1))


def summary(w: World, job: JobId) -> str:
    return summarise(w.cluster, job)


def everyone(_: Job) -> bool:
    return True


# summaries


def test_a_summary_for_each_phase() -> None:
    w = world()
    first = w.submit(PAIR)
    second = w.submit(PAIR)
    third = w.submit(PAIR)
    assert summary(w, first) == "0 of 2 checked in, 0 armed"
    assert summary(w, second) == "needs room for 2 executions at once; 0 fit"
    assert summary(w, third) == "waits for its turn"

    w.tell_all(first, Stage.PREPARED)
    w.tell(first, 0, Stage.ARMED)
    assert summary(w, first) == "2 of 2 checked in, 1 armed"
    w.tell(first, 1, Stage.ARMED)
    w.tell_all(first, Stage.RUNNING)
    assert summary(w, first) == "2 of 2 running, 0 succeeded"
    w.tell(first, 0, Stage.EXITED)
    assert summary(w, first) == "1 of 2 running, 1 succeeded"
    w.tell(first, 1, Stage.EXITED)
    assert summary(w, first) == "all succeeded"

    w.stop(second)
    assert summary(w, second) == "stopping as requested"
    w.tell_all(second, Stage.STOPPED)
    assert summary(w, second) == "stopped on request"

    fourth = w.submit(spec(2))
    w.turn(StopRequested(job=fourth, cause=EventCause("call k3f-1 jobs.stop", "ada")))
    assert summary(w, fourth) == "stopping: ada asked for it"

    w.tell(third, 1, Stage.FAILED)
    assert summary(w, third) == "stopping because rank 1 on b: no such image"
    w.tell(third, 0, Stage.STOPPED)
    assert summary(w, third) == "rank 1 on b: no such image"


def test_a_job_that_ends_with_rank_0_says_so() -> None:
    w = world()
    job = w.running(spec(2, gpus=1, success=SuccessRule.RANK0))
    w.tell(job, 0, Stage.EXITED)
    assert summary(w, job) == "stopping because rank 0 has succeeded"
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=143))

    assert summary(w, job) == "rank 0 succeeded"


# one job


def test_a_job_is_shown_with_its_attempt_executions_and_times() -> None:
    w = world()
    job = w.submit(PAIR)
    w.advance(2)
    w.tell(job, 0, Stage.PREPARING, detail="pulling image 41 %")

    view = job_view(w.cluster, job)
    execution = view.attempts[0].executions[0]
    assert (view.id, view.phase, view.submitted_at, view.started_at) == (job, JobPhase.PREPARING, AT, None)
    assert view.states == {State.PREPARING: 1, State.PLACED: 1}
    assert (execution.rank, execution.role, execution.node, execution.gpus) == (0, "worker", "a", ("GPU-a-0",))
    assert execution.detail == "pulling image 41 %"
    assert execution.transitions == (
        Transition(state=State.QUEUED, at=AT),
        Transition(state=State.PLACED, at=AT),
        Transition(state=State.PREPARING, at=AT + timedelta(seconds=2)),
    )


def test_in_lists_a_job_comes_without_its_executions() -> None:
    w = world()
    view = job_view(w.cluster, w.submit(PAIR), whole=False)

    assert [attempt.executions for attempt in view.attempts] == [()]


def test_a_job_that_failed_carries_the_first_failure() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=7))

    assert str(job_view(w.cluster, job).failure) == "rank 1 on b: ended with exit code 7"


# why


def test_a_job_that_waits_is_told_its_place_and_what_each_node_lacks() -> None:
    w = world()
    w.submit(PAIR)
    head = w.submit(PAIR)

    explanation = explain(w.cluster, head, w.now)
    assert explanation.summary == (
        "needs room for 2 executions at once; 0 fit; it is the next in the queue, and what comes free is kept for it"
    )
    assert explanation.queue_position == 1
    assert [(each.node, each.reason) for each in explanation.refusals] == [
        ("a", "needs 1 GPU, 0 are free"),
        ("b", "needs 1 GPU, 0 are free"),
    ]


def test_a_job_for_which_nodes_are_missing_is_told_so() -> None:
    w = world()
    w.disconnect("b")
    job = w.submit(PAIR)

    explanation = explain(w.cluster, job, w.now)
    assert explanation.summary == (
        "needs room for 2 executions at once; 1 fits; it is the next in the queue, "
        "but too large for the nodes that are there"
    )
    assert explanation.refusals[1].reason == "is unreachable: its agent is not connected"


def test_a_job_behind_others_is_told_who_comes_first() -> None:
    w = world()
    w.submit(PAIR)
    head, second = w.submit(spec(2, gpus=1, name="big")), w.submit(PAIR)

    assert explain(w.cluster, second, w.now).summary == (
        f"needs room for 2 executions at once; 0 fit; 1 ahead of it in the queue, the next one is big ({head})"
    )


def test_a_job_that_would_fit_but_for_the_head_of_the_queue_is_told_so() -> None:
    w = world()
    w.submit(spec(1, gpus=1))
    head, second = w.submit(spec(2, gpus=1, name="big")), w.submit(spec(1, gpus=1))

    explanation = explain(w.cluster, second, w.now)
    assert explanation.summary == (
        f"would fit, but what is free is kept for big ({head}), the next in the queue; 1 ahead of it"
    )
    assert explanation.refusals == ()


def test_a_job_behind_one_that_pauses_is_told_that_it_is_the_next() -> None:
    w = world()
    again = w.running(spec(1, gpus=1, restarts=RestartPolicy(limit=2)))
    for _ in range(2):
        w.tell(again, 0, Stage.EXITED, exit=Exit(code=1))
        if w.phase(again) is JobPhase.PREPARING:
            w.tell(again, 0, Stage.RUNNING)
    w.submit(spec(1, gpus=1))
    job = w.submit(PAIR)

    explanation = explain(w.cluster, job, w.now)
    assert explanation.queue_position == 2
    assert explanation.summary == (
        "needs room for 2 executions at once; 1 fits; it is the next in the queue, and what comes free is kept for it"
    )


def test_to_ask_why_changes_nothing() -> None:
    w = world()
    w.submit(spec(1, gpus=1))
    w.submit(PAIR)
    second = w.submit(spec(1, gpus=1))
    before = w.cluster.load.reservation
    explain(w.cluster, second, w.now)

    assert before is not None
    assert w.cluster.load.reservation == before


def test_a_job_that_prepares_is_told_whom_it_waits_for_and_how_long_at_most() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell(job, 0, Stage.PREPARED)
    w.tell(job, 1, Stage.PREPARING, detail="pulling image 41 %")
    w.advance(20)

    explanation = explain(w.cluster, job, w.now)
    assert explanation.awaited == (
        Awaited(rank=1, node=NodeId("b"), state=State.PREPARING, detail="pulling image 41 %"),
    )
    assert explanation.summary == "1 of 2 checked in, 0 armed; waits for 1 more, for at most 580 s from now"


def test_a_job_that_arms_is_told_who_is_not_armed() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell_all(job, Stage.PREPARED)
    w.tell(job, 1, Stage.ARMED)

    assert [each.rank for each in explain(w.cluster, job, w.now).awaited] == [0]


def test_a_job_that_ended_is_told_how() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell_all(job, Stage.EXITED)

    assert explain(w.cluster, job, w.now).summary == "all succeeded"


# names


def ids(w: World, *names: str) -> list[JobId]:
    jobs = []
    for name in names:
        submission = w.submission(spec(1, name=name), queue_anyway=True)
        w.turn(submission)
        jobs.append(submission.job)
    return jobs


def test_a_job_is_found_by_its_id_by_its_beginning_and_by_its_name() -> None:
    w = World()
    (job,) = ids(w, "train")

    assert [resolve(w.cluster, name) for name in (job, job[:2], "train")] == [job] * 3


def test_of_several_jobs_of_one_name_the_newest_is_meant() -> None:
    w = World()
    _, newest = ids(w, "train", "train")

    assert resolve(w.cluster, "train") == newest


def test_a_name_goes_before_the_beginning_of_an_id() -> None:
    w = World()
    _, named = ids(w, "train", "j0")

    assert resolve(w.cluster, "j0") == named


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("j0", "2 jobs have an id that begins with 'j0' (j001, j002); give more of it"),
    ],
)
def test_the_beginning_of_several_ids_is_not_enough(name: str, message: str) -> None:
    w = World()
    ids(w, "x", "y")

    with pytest.raises(ConflictError) as error:
        resolve(w.cluster, name)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["nobody", ""])
def test_an_unknown_name_is_said_to_be_so(name: str) -> None:
    w = World()
    ids(w, "x")

    with pytest.raises(UnknownNameError) as error:
        resolve(w.cluster, name)
    assert str(error.value) == f"there is no job {name!r}; `muster jobs --all` lists them"


# pages


def pages(w: World, size: int, wanted: Callable[[Job], bool] = everyone) -> list[list[JobId]]:
    found, before = [], None
    while True:
        page, before = jobs_page(w.cluster, before, size, wanted)
        found.append([view.id for view in page])
        if before is None:
            return found


def test_jobs_are_listed_newest_first_page_by_page() -> None:
    w = World()
    first, second, third, fourth = ids(w, "1", "2", "3", "4")

    assert pages(w, 3) == [[fourth, third, second], [first]]


def test_a_page_that_takes_all_is_the_last_one() -> None:
    w = World()
    first, second = ids(w, "1", "2")

    assert pages(w, 2) == [[second, first]]
    assert pages(World(), 2) == [[]]


def test_only_wanted_jobs_count_for_a_page() -> None:
    w = World()
    jobs = ids(w, *"abcd")

    assert pages(w, 1, lambda job: job.spec.name in "ad") == [[jobs[3]], [jobs[0]]]


def test_jobs_that_come_or_go_between_two_pages_do_not_shift_the_second() -> None:
    w = World()
    first, second, third = ids(w, "1", "2", "3")
    _, before = jobs_page(w.cluster, None, 2, everyone)
    ids(w, "4")
    w.delete(second, force=True)

    page, _ = jobs_page(w.cluster, before, 2, everyone)
    assert [view.id for view in page] == [first]
    assert third in w.cluster.jobs


def test_live_jobs_are_those_that_have_not_ended() -> None:
    w = World()
    first, second, third = ids(w, "1", "2", "3")
    w.stop(second)

    def live() -> list[JobId]:
        return [view.id for view in jobs_page(w.cluster, None, 10, everyone, Among(live=True))[0]]

    assert live() == [third, first]
    w.restart()
    assert live() == [third, first]
    w.delete(third, force=True)
    assert live() == [first]


# nodes


def test_nodes_are_listed_in_their_natural_order() -> None:
    w = World(("n10", 0), ("n9", 0))

    assert [view.name for view in node_views(w.cluster)] == ["n9", "n10"]


def test_a_node_shows_what_is_given_away() -> None:
    w = World(("a", 4))
    job = w.submit(spec(2, gpus=1, cpus=1.5, memory=GIB))
    w.advance(3)
    w.heartbeat("a")

    view = node_view(w.cluster, NodeId("a"))
    assert view.executions == (w.rank(job, 0).id, w.rank(job, 1).id)
    assert view.gpus_taken == ("GPU-a-0", "GPU-a-1")
    assert (view.cpu_millis_taken, view.memory_taken) == (3000, 2 * GIB)
    assert (view.state, view.last_seen_at, view.joined_at) == (NodeState.READY, AT + timedelta(seconds=3), AT)


def test_a_node_that_did_not_speak_since_the_coordinator_started_was_not_seen() -> None:
    w = world()
    w.restart()

    assert node_view(w.cluster, NodeId("a")).last_seen_at is None


def test_an_unknown_node_is_said_to_be_so() -> None:
    with pytest.raises(UnknownNameError) as error:
        node_view(World().cluster, NodeId("x"))
    assert str(error.value) == "there is no node 'x'; `muster nodes` lists them"


def test_a_dry_run_shows_what_could_be_accepted() -> None:
    w = world()
    answer = w.try_submit(PAIR, dry_run=True)

    view = unaccepted_view(answer.job)  # type: ignore[union-attr]  # it was accepted
    assert (view.id, view.phase, view.summary) == ("", JobPhase.QUEUED, "could be accepted")
