"""Jobs behind the head of the queue that may have seats kept for it, as they end before it could start."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from coordinator.core.events import ChangeRequested
from coordinator.core.outlook.changes import helpful_changes
from coordinator.core.outlook.forecast import estimate_start
from coordinator.views.explain import explain
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.explanation import HelpfulChange
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.queueing.change import JobChange
from muster.jobfile.quantity import parse_duration
from tests.builders import World, inventory, pass_time, report, spec

MINUTE = timedelta(minutes=1)
CHECK_IN = 10 * MINUTE
GRACE = Timeouts().grace


def limited(minutes: float | None, count: int = 1, gpus: int = 2, **fields: Any) -> JobSpec:
    """A job with a limit on its run time, or without one."""
    run = None if minutes is None else minutes * MINUTE
    return spec(count, gpus=gpus, timeouts=Timeouts(check_in=CHECK_IN, run=run), **fields)


def start(w: World, wanted: JobSpec) -> JobId:
    job = w.submit(wanted)
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    return job


def end(w: World, job: JobId) -> None:
    w.tell_all(job, Stage.EXITED, exit=Exit(code=0), log_complete=True)


def big_waits(*minutes: float | None) -> tuple[World, JobId]:
    """Two nodes of four GPUs, half of each held by a job with such a limit, and a job that wants both of them whole."""
    w = World(("n1", 4), ("n2", 4))
    for here, elsewhere, limit in zip(("n1", "n2"), ("n2", "n1"), minutes, strict=True):
        assert w.seats(start(w, limited(limit, exclude_nodes=(elsewhere,)))) == [here]
    return w, w.submit(limited(None, count=2, gpus=4))


def test_a_job_that_ends_before_the_head_could_start_has_seats_that_are_kept_for_it() -> None:
    """Scenario G3: what holds the seats has 60 minutes left, and the small job ends within 30."""
    w, big = big_waits(60, 60)
    small = w.submit(limited(20))
    assert (w.seats(small), w.phase(big)) == (["n1"], JobPhase.QUEUED)


def test_a_job_that_may_end_later_than_the_head_could_start_waits() -> None:
    """Scenario G4: with a limit of 55 minutes and a check-in of 10 it may still run after 60."""
    w, _ = big_waits(60, 60)
    assert w.phase(w.submit(limited(55))) is JobPhase.QUEUED


def test_check_in_limit_and_grace_count_to_the_second() -> None:
    w, _ = big_waits(60, 60)
    second = timedelta(seconds=1)
    just_too_long, just_in_time = (w.submit(limited((50 * MINUTE + over) / MINUTE)) for over in (second, 0 * second))
    assert (w.phase(just_too_long), w.phase(just_in_time)) == (JobPhase.QUEUED, JobPhase.PREPARING)


def test_the_last_of_its_seats_to_be_free_decides() -> None:
    w, _ = big_waits(5, 60)
    assert w.phase(w.submit(limited(20))) is JobPhase.PREPARING


@pytest.mark.parametrize("limits", [(60, None), (None, None)])
def test_nobody_passes_where_something_without_a_limit_has_seats_of_the_head(limits: tuple[float | None, ...]) -> None:
    w, _ = big_waits(*limits)
    assert w.phase(w.submit(limited(1))) is JobPhase.QUEUED


def test_what_is_kept_for_nobody_is_taken_first() -> None:
    w, _ = big_waits(60, 60)
    w.connect("n3", inventory("n3", 4))
    assert w.seats(w.submit(limited(20))) == ["n3"]


def test_who_comes_first_of_those_that_end_in_time_passes_first() -> None:
    w = World(("n1", 4))
    start(w, limited(60))
    w.submit(limited(None, gpus=4))
    filler = w.submit(limited(20))
    jobs = [w.submit(limited(minutes)) for minutes in (55, 30, None, 10)]
    end_before_it_runs(w, filler)
    assert [w.phase(job) for job in jobs] == [JobPhase.QUEUED, JobPhase.PREPARING, JobPhase.QUEUED, JobPhase.QUEUED]


def end_before_it_runs(w: World, job: JobId) -> None:
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    end(w, job)


def test_a_job_that_is_changed_to_end_in_time_passes() -> None:
    w, _ = big_waits(60, 60)
    small = w.submit(limited(55))
    w.turn(ChangeRequested(job=small, change=JobChange(run=20 * MINUTE)))
    assert w.phase(small) is JobPhase.PREPARING


def test_over_a_restart_the_same_jobs_pass() -> None:
    w, _ = big_waits(60, 60)
    w.restart()
    for node in ("n1", "n2"):
        reports = [report(each, Stage.RUNNING) for each in w.cluster.load.used(NodeId(node)).executions]
        w.connect(node, inventory(node, 4), reports=reports)
    late, in_time = w.submit(limited(55)), w.submit(limited(20))
    assert (w.phase(late), w.phase(in_time)) == (JobPhase.QUEUED, JobPhase.PREPARING)


def test_an_order_to_stop_is_as_good_as_a_limit() -> None:
    """What was ordered to stop has ended after its grace; nobody passes, as no check-in is that short."""
    w, big = big_waits(60, None)
    [endless] = [each for each in w.cluster.jobs if each != big and w.cluster.jobs[each].spec.timeouts.run is None]
    assert estimate_start(w.cluster, big, w.now).latest is None
    w.stop(endless)
    assert estimate_start(w.cluster, big, w.now).latest == w.now + 60 * MINUTE + GRACE
    assert w.phase(w.submit(limited(20))) is JobPhase.PREPARING


def two_projects() -> tuple[World, JobId]:
    """Guaranteed jobs have all of 16 GPUs: four are held by A, which wants eight more on one node, and twelve by B.

    A is next, as B has more of its quota. When B has less, its jobs come first, and what is kept for A stays: they
    have no better right to it.
    """
    w = World(("n1", 8), ("n2", 8), projects=("default", "a", "b"))
    w.promise("a", quota=16)
    w.promise("b", quota=16)
    start(w, of("b", 60, gpus=2, count=2))
    for _ in range(2):
        start(w, of("a", None, exclude_nodes=("n1",)))
    for minutes in (5, *[60] * 7):
        start(w, of("b", minutes, gpus=1))
    return w, w.submit(of("a", None, gpus=8))


def of(project: str, minutes: float | None, count: int = 1, **fields: Any) -> JobSpec:
    return limited(minutes, count, project=project, job_class=JobClass.GUARANTEED, **fields)


@pytest.mark.parametrize("minutes", [None, 45], ids=["without a limit", "in time for once"])
def test_small_jobs_of_one_project_never_keep_a_large_one_of_another_waiting(minutes: float | None) -> None:
    """Scenario G5: B gets and ends small jobs all the time, and the large job of A starts when it was promised."""
    w, large = two_projects()
    latest = estimate_start(w.cluster, large, w.now).latest
    assert latest is not None
    passed = 0
    while w.phase(large) is JobPhase.QUEUED and w.now < latest:
        w.submit(of("b", minutes, gpus=1))
        for job in tuple(w.cluster.jobs):
            if job != large and w.phase(job) is JobPhase.PREPARING:
                passed += 1
                w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
        pass_time(w, 300)
        for job in tuple(w.cluster.jobs):
            if w.phase(job) is JobPhase.STOPPING:
                end(w, job)
    assert w.phase(large) is JobPhase.PREPARING
    assert (passed > 0) == (minutes is not None)


def test_a_small_job_of_another_project_that_ends_in_time_passes() -> None:
    """Scenario G5 with G3: what A lets go on its node is there for B until the rest of it has drained."""
    w, large = two_projects()
    end(w, next(iter(w.cluster.jobs)))
    late, in_time = w.submit(of("b", 55, gpus=1)), w.submit(of("b", 20, gpus=1))
    assert [w.phase(each) for each in (large, late, in_time)] == [
        JobPhase.QUEUED,
        JobPhase.QUEUED,
        JobPhase.PREPARING,
    ]


# what people are told


def test_who_waits_is_told_by_when_a_job_must_have_ended_to_pass() -> None:
    w, big = big_waits(60, 60)
    told = explain(w.cluster, w.submit(limited(55)), w.now)
    by = f"{w.now + 60 * MINUTE + GRACE:%Y-%m-%d %H:%M:%S} UTC"
    assert told.summary == (
        f"would fit, but what is free is kept for train ({big}), the next in the queue; "
        f"only what has ended by {by} for sure may be there before it; 1 ahead of it"
    )
    assert told.changes == (
        HelpfulChange(change="timeouts.run: 49m", why="it would have ended before the next in the queue could start"),
    )


@pytest.mark.parametrize("limits", [(60, None), (10, 10)], ids=["nobody may pass", "nothing is that short"])
def test_no_shorter_limit_is_proposed_where_it_would_not_help(limits: tuple[float | None, ...]) -> None:
    w, _ = big_waits(*limits)
    assert helpful_changes(w.cluster, w.submit(limited(55)), w.now) == ()


# whatever happens


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_the_promise_to_the_head_never_becomes_later(seed: int) -> None:
    """Jobs with all kinds of limits come, run on to their limit or not, and pass where they may."""
    random = Random(seed)
    w = World(("n1", 4), ("n2", 4), ("n3", 2))
    for _ in range(4):
        start_if_placed(w, w.submit(any_job(random, (2, 5, 8))))
    head = w.submit(limited(None, count=2, gpus=4))
    if w.cluster.load.reservation is None or w.cluster.load.reservation.job != head:
        return
    latest = estimate_start(w.cluster, head, w.now).latest
    while w.phase(head) is JobPhase.QUEUED:
        assert latest is not None
        assert w.now <= latest, "the head has not started in time"
        w.submit(any_job(random, (0.5, 2, 4, None)))
        pass_time(w, random.choice((10, 30, 60)))
        for job in [each for each in w.cluster.jobs if each != head]:
            start_if_placed(w, job)
            if w.phase(job) is JobPhase.STOPPING or (w.phase(job) is JobPhase.RUNNING and random.random() < 0.03):
                end(w, job)
        if w.phase(head) is JobPhase.QUEUED:
            before, latest = latest, estimate_start(w.cluster, head, w.now).latest
            assert latest is not None
            assert latest <= max(before, w.now)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_a_limit_that_would_help_does_within_a_minute(seed: int) -> None:
    """One job of all that wait behind the head gets the limit that it was told of, and is placed."""
    random = Random(seed)
    w = World(("n1", 4), ("n2", 4), ("n3", 2))
    for _ in range(random.randint(2, 5)):
        start_if_placed(w, w.submit(any_job(random, (20, 40, 90))))
    head = w.submit(limited(None, count=2, gpus=4))
    waiting = [w.submit(any_job(random, (None, 30, 90))) for _ in range(4)]
    behind = [job for job in waiting if w.phase(job) is JobPhase.QUEUED]
    told = [(job, each.change) for job in behind for each in helpful_changes(w.cluster, job, w.now)]
    limits = [(job, change) for job, change in told if change.startswith("timeouts.run: ")]
    event(f"told of a limit: {bool(limits)}")
    if not limits:
        return
    job, change = random.choice(limits)
    pass_time(w, random.choice((0, 50)))
    w.turn(ChangeRequested(job=job, change=JobChange(run=parse_duration(change.partition(": ")[2]))))
    assert (w.phase(job), w.phase(head)) == (JobPhase.PREPARING, JobPhase.QUEUED)


def any_job(random: Random, limits: tuple[float | None, ...]) -> JobSpec:
    minutes = random.choice(limits)
    timeouts = Timeouts(check_in=timedelta(seconds=20), run=None if minutes is None else minutes * MINUTE)
    return spec(random.choice((1, 2)), gpus=random.choice((1, 2)), timeouts=timeouts)


def start_if_placed(w: World, job: JobId) -> None:
    if w.phase(job) is JobPhase.PREPARING:
        w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
