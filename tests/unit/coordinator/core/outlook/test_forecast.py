"""When a queued job may start: by run limits at the latest, and about then if all goes as expected."""

from datetime import timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.outlook.forecast import MOST_AHEAD, estimate_start
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import StartEstimate
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, pass_time, spec

MINUTE = timedelta(minutes=1)
GRACE = Timeouts().grace


def limited(minutes: int | None, expected: int | None = None, **fields: int) -> JobSpec:
    """A job with a limit on its run time, and what its owner expects of it."""
    run = None if minutes is None else minutes * MINUTE
    return spec(
        **{"count": 1, "gpus": 2, **fields},
        timeouts=Timeouts(run=run, expected=None if expected is None else expected * MINUTE),
    )


def running(w: World, wanted: JobSpec) -> JobId:
    job = w.submit(wanted)
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    return job


def end(w: World, job: JobId) -> None:
    for rank in range(w.cluster.jobs[job].spec.size):
        w.tell(job, rank, Stage.EXITED, exit=Exit(code=0), log_complete=True)


def test_the_head_starts_at_the_latest_when_the_last_of_its_seats_is_free_by_limits() -> None:
    """Scenario E1: three jobs with limits hold its seats; two of them end later than the third."""
    w = World(("n1", 2), ("n2", 2), ("n3", 2))
    for minutes in (60, 100, 100):
        running(w, limited(minutes))
    head = w.submit(spec(3, gpus=2))
    assert estimate_start(w.cluster, head, w.now).latest == w.now + 100 * MINUTE + GRACE


def test_seats_that_are_free_earlier_count_alone() -> None:
    w = World(("n1", 4))
    running(w, limited(60))
    running(w, limited(100))
    head = w.submit(spec(1, gpus=2))
    assert estimate_start(w.cluster, head, w.now).latest in {w.now + 60 * MINUTE + GRACE, w.now + 100 * MINUTE + GRACE}


def test_nothing_is_promised_where_a_job_without_a_limit_has_its_seats() -> None:
    w = World(("n1", 2))
    running(w, limited(None))
    assert estimate_start(w.cluster, w.submit(spec(1, gpus=2)), w.now) == StartEstimate()


def test_what_the_owner_expects_of_a_job_says_about_when_the_next_one_starts() -> None:
    w = World(("n1", 2))
    running(w, limited(60, expected=20))
    found = estimate_start(w.cluster, w.submit(spec(1, gpus=2)), w.now)
    assert found == StartEstimate(about=w.now + 20 * MINUTE, latest=w.now + 60 * MINUTE + GRACE)


def test_a_job_that_runs_longer_than_expected_ends_by_its_limit() -> None:
    w = World(("n1", 2))
    running(w, limited(60, expected=20))
    job = w.submit(spec(1, gpus=2))
    limit = w.now + 60 * MINUTE + GRACE
    pass_time(w, 30 * 60)
    assert estimate_start(w.cluster, job, w.now).about == limit


def test_those_before_it_take_what_comes_free_first() -> None:
    w = World(("n1", 2), ("n2", 2))
    running(w, limited(None, expected=20))
    running(w, limited(None, expected=50))
    begun = w.now
    first, second = w.submit(spec(1, gpus=2)), w.submit(spec(1, gpus=2))
    assert estimate_start(w.cluster, first, w.now).about == begun + 20 * MINUTE
    assert estimate_start(w.cluster, second, w.now).about == begun + 50 * MINUTE
    assert estimate_start(w.cluster, second, w.now).latest is None


def test_behind_very_many_jobs_nothing_is_said() -> None:
    w = World(("n1", 2))
    running(w, limited(None, expected=20))
    jobs = [w.submit(spec(1, gpus=1)) for _ in range(MOST_AHEAD + 2)]
    assert estimate_start(w.cluster, jobs[-1], w.now).about is None


def test_a_job_that_its_project_keeps_waiting_has_no_estimate() -> None:
    w = World(("n1", 2), projects=("default", "a"))
    w.promise("a", quota=1, limit=1)
    running(w, spec(1, gpus=1, project="a", job_class=JobClass.PREEMPTIBLE, timeouts=Timeouts(run=MINUTE)))
    job = w.submit(spec(1, gpus=1, project="a", job_class=JobClass.PREEMPTIBLE))
    assert estimate_start(w.cluster, job, w.now) == StartEstimate()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_the_head_has_started_by_the_time_that_was_promised(seed: int) -> None:
    """Each job ends at its limit at the latest, and whatever else is submitted meanwhile cannot delay the head."""
    random = Random(seed)
    w = World(("n1", 4), ("n2", 4))
    jobs = [w.submit(limited(random.choice((5, 20, 60, None)), gpus=random.choice((1, 2, 4)))) for _ in range(6)]
    for job in jobs:
        if w.phase(job) is JobPhase.PREPARING:
            w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    kept = w.cluster.load.reservation
    latest = None if kept is None else estimate_start(w.cluster, kept.job, w.now).latest
    if kept is None or latest is None:
        return
    while w.now < latest and w.phase(kept.job) is JobPhase.QUEUED:
        w.submit(limited(random.choice((5, None)), gpus=1))
        pass_time(w, 60)
        for job in tuple(w.cluster.jobs):
            attempt = w.cluster.newest_attempt(job)
            if w.phase(job) is JobPhase.STOPPING or attempt.failure is not None:
                end(w, job)
            elif w.phase(job) is JobPhase.PREPARING and job != kept.job:
                w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    assert w.phase(kept.job) is not JobPhase.QUEUED
