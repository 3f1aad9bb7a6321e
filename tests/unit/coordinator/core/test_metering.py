"""What of the GPU time of attempts is within the quota of their project, and what is borrowed."""

from datetime import timedelta

import pytest

from coordinator.core.events import ProjectRemoved
from coordinator.core.spent import SpentWish
from coordinator.core.turn.metering import borrowed_part, reading
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from tests.builders import World, pass_time, report, spec

GPU_SECOND = 1000


def world(quota: int | None = 4) -> World:
    """16 GPUs; project a has a quota, and b has none of its own."""
    w = World(("n1", 16), projects=("default", "a", "b"))
    if quota is not None:
        promise(w, quota)
    return w


def promise(w: World, gpus: int) -> None:
    w.promise("a", quota=gpus)


def running(w: World, gpus: int, count: int = 1, project: str = "a") -> JobId:
    return w.running(spec(count, gpus, project=project))


def end(w: World, job: JobId, rank: int | None = None) -> None:
    for each in [rank] if rank is not None else range(w.cluster.jobs[job].spec.size):
        w.tell(job, each, Stage.EXITED, exit=Exit(code=0))


def borrowed(w: World) -> dict[str, float]:
    """GPU seconds above the quota, by job, of what has ended."""
    all_of_it = SpentWish(since=None, until=w.now + timedelta(days=1), words=("job",), most=100)
    return {group.job: group.borrowed / GPU_SECOND for group in w.store.spent(all_of_it).groups}


@pytest.mark.parametrize(
    ("held", "quota", "part"),
    [(0, 0, 0), (4000, 4000, 0), (1000, 4000, 0), (8000, 4000, 500_000), (500, 0, 1_000_000), (3000, 1000, 666_666)],
)
def test_the_part_that_is_borrowed_is_what_is_held_above_the_quota(held: int, quota: int, part: int) -> None:
    assert borrowed_part(held, quota) == part


def test_whoever_holds_something_while_more_than_the_quota_is_held_has_borrowed_its_part_of_it() -> None:
    w = world()
    first = running(w, 4)
    pass_time(w, 100)
    second = running(w, 4)
    pass_time(w, 60)
    end(w, first)
    pass_time(w, 40)
    end(w, second)
    assert borrowed(w) == {first: 4 * 60 / 2, second: 4 * 60 / 2}


def test_executions_of_a_gang_that_end_earlier_have_borrowed_less() -> None:
    w = world(0)
    gang = running(w, 1, count=2)
    pass_time(w, 10)
    end(w, gang, 0)
    pass_time(w, 20)
    end(w, gang, 1)
    assert borrowed(w) == {gang: 10 + 30}


def test_a_quota_that_changes_counts_from_then_on() -> None:
    w = world(8)
    job = running(w, 8)
    pass_time(w, 50)
    promise(w, 2)
    pass_time(w, 40)
    promise(w, 8)
    pass_time(w, 10)
    end(w, job)
    assert borrowed(w) == {job: 6 * 40}


def test_where_nobody_has_a_quota_nothing_is_borrowed_and_no_meter_is_written() -> None:
    w = world(quota=None)
    job = running(w, 4)
    pass_time(w, 30)
    end(w, job)
    assert borrowed(w) == {job: 0}
    assert not w.cluster.records.meters


def test_the_project_that_is_promised_everything_borrows_nothing() -> None:
    w = world()
    job = running(w, 8, project="default")
    pass_time(w, 30)
    end(w, job)
    assert borrowed(w) == {job: 0}


def test_a_meter_goes_on_where_it_was_after_a_restart_of_the_coordinator() -> None:
    w = world(2)
    job = running(w, 4)
    pass_time(w, 20)
    w.restart()
    w.connect("n1", reports=[report(w.rank(job, 0).id, Stage.RUNNING, address="n1")])
    pass_time(w, 20)
    pool = w.attempt(job).pool
    assert reading(w.cluster, "a", pool, w.now) == timedelta(seconds=20)
    end(w, job)
    assert borrowed(w) == {job: 2 * 40}


def test_meters_go_with_their_project() -> None:
    w = world(2)
    job = running(w, 4)
    end(w, job)
    w.delete(job)
    assert [meter.project for meter in w.store.load().meters] == ["a"]
    w.turn(ProjectRemoved(name="a"))
    assert w.store.load().meters == ()
    assert not w.cluster.records.meters
