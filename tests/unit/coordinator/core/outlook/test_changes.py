"""What would have a queued job placed now: what is said of it, and that it is true."""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.events import DeleteRequested
from coordinator.core.outlook.changes import helpful_changes, pool_refusals
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import HelpfulChange
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.jobfile.quantity import parse_duration
from tests.builders import World, inventory, spec

MINUTE = timedelta(minutes=1)
A100, H100 = PoolChoice(pool="a100"), PoolChoice(pool="h100")


def two_pools(projects: tuple[str, ...] = ("default",)) -> World:
    """Two nodes of four GPUs in pool h100, and one in pool a100."""
    w = World(projects=projects)
    for node, pool in (("h1", "h100"), ("h2", "h100"), ("a1", "a100")):
        w.connect(node, inventory(node, 4, labels={"pool": pool}))
    return w


def run(w: World, wanted: JobSpec) -> JobId:
    job = w.submit(wanted)
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    return job


def changes(w: World, job: JobId) -> dict[str, str]:
    return {each.change: each.why for each in helpful_changes(w.cluster, job, w.now)}


def test_as_many_workers_as_fit_now_would_help() -> None:
    w = World(("n1", 4), ("n2", 4))
    run(w, spec(1, gpus=2))
    job = w.submit(spec(4, gpus=2))
    assert changes(w, job) == {"workers: 3": "3 of 4 fit now"}


def test_fewer_workers_help_nobody_where_all_is_kept_for_the_head() -> None:
    w = World(("n1", 4))
    run(w, spec(1, gpus=2))
    w.submit(spec(1, gpus=4))
    job = w.submit(spec(3, gpus=1))
    assert changes(w, job) == {}


def test_a_pool_that_the_job_does_not_name_would_help() -> None:
    w = two_pools()
    run(w, spec(2, gpus=4, pools=(H100,)))
    job = w.submit(spec(1, gpus=4, pools=(H100,)))
    assert changes(w, job) == {"pools: [a100]": "pool a100 has room"}


def test_another_class_would_help_where_guaranteed_jobs_have_the_quota() -> None:
    w = World(("n1", 8), projects=("default", "a"))
    w.promise("a", quota=2)
    run(w, spec(1, gpus=2, project="a", job_class=JobClass.GUARANTEED))
    job = w.submit(spec(1, gpus=2, project="a", job_class=JobClass.GUARANTEED))
    assert changes(w, job) == {"class: preemptible": "it may have more than the quota of a"}


def test_no_class_helps_against_a_limit_and_fewer_workers_do() -> None:
    w = World(("n1", 8), projects=("default", "a"))
    w.promise("a", quota=2, limit=3)
    job = w.submit(spec(4, gpus=1, project="a", job_class=JobClass.PREEMPTIBLE), queue_anyway=True)
    assert changes(w, job) == {"workers: 3": "3 of 4 fit now"}


def test_each_pool_says_why_the_job_is_not_there() -> None:
    w = two_pools(projects=("default", "a"))
    run(w, spec(2, gpus=4, pools=(H100,)))
    run(w, spec(1, gpus=2, pools=(A100,)))
    job = w.submit(spec(1, gpus=4, pools=(H100, A100)))
    assert {each.pool: each.reason for each in pool_refusals(w.cluster, job, w.now)} == {
        "h100": "needs room for 1 execution at once; 0 fit",
        "a100": "needs room for 1 execution at once; 0 fit",
    }


def test_nothing_is_said_of_pools_where_there_is_one() -> None:
    w = World(("n1", 1))
    run(w, spec(1, gpus=1))
    assert pool_refusals(w.cluster, w.submit(spec(1, gpus=1)), w.now) == ()


def changed(wanted: JobSpec, change: HelpfulChange) -> JobSpec:
    """The job as it would be submitted with a change."""
    key, _, value = change.change.partition(": ")
    match key:
        case "workers":
            return replace(wanted, roles=(replace(wanted.roles[0], count=int(value)),))
        case "pools":
            return replace(wanted, pools=(PoolChoice(pool=value.strip("[]")),))
        case "class":
            return replace(wanted, job_class=JobClass(value))
        case "timeouts.run":
            return replace(wanted, timeouts=replace(wanted.timeouts, run=parse_duration(value)))
    raise AssertionError(change)


def any_job(random: Random) -> JobSpec:
    return spec(
        random.choice((1, 1, 2, 3, 5)),
        gpus=random.choice((0, 1, 1, 2, 4)),
        cpus=random.choice((0, 1, 3)),
        project=random.choice(("a", "b")),
        job_class=random.choice(tuple(JobClass)),
        pools=random.choice(((), (H100,), (A100,), (H100, A100))),
        exclusive=random.random() < 0.1,
        timeouts=Timeouts(check_in=timedelta(seconds=30), run=random.choice((None, MINUTE, 20 * MINUTE, 60 * MINUTE))),
    )


@pytest.mark.parametrize("is_head", [True, False], ids=["the head", "another one"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_what_would_help_does(is_head: bool, seed: int) -> None:
    """The changed job is placed: behind all that wait; of the head, once nobody else waits who might take its seats.

    Where nothing is kept for the head, as it can never run, whoever follows it would have something kept instead.
    """
    random = Random(seed)
    w = two_pools(projects=("default", "a", "b"))
    w.promise("a", quota=random.choice((0, 2, 4)), limit=random.choice((6, 100)))
    w.promise("b", quota=random.choice((0, 4)))
    jobs = [w.submit(any_job(random), queue_anyway=True) for _ in range(random.randint(3, 9))]
    running = [job for job in jobs if w.phase(job) is JobPhase.PREPARING]
    for job in running[: random.randint(0, len(running))]:
        w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
        if random.random() < 0.5:
            w.tell_all(job, Stage.EXITED, exit=Exit(code=0), log_complete=True)
    waiting = [job for job in jobs if w.phase(job) is JobPhase.QUEUED]
    kept = w.cluster.load.reservation
    told = [(job, each) for job in waiting for each in helpful_changes(w.cluster, job, w.now)]
    told = [(job, each) for job, each in told if (kept is None or kept.job == job) is is_head]
    if not told:
        return
    job, change = random.choice(told)
    wanted = changed(w.cluster.jobs[job].spec, change)
    gone = [other for other in waiting if other == job or is_head]
    w.turn(*(DeleteRequested(job=other, force=True) for other in gone))
    assert w.phase(w.submit(wanted, queue_anyway=True)) is JobPhase.PREPARING
