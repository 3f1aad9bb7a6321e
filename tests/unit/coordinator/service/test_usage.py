"""Reports of usage: who may see what, of what has ended and of what runs, without a transport."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple, cast

import pytest

from coordinator.engine.engine import Engine
from coordinator.service.archive import StoredPast
from coordinator.service.queueing.usage import UsageOperations
from muster.domain.errors import InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.fleet.quota import QuotaUnit, UnitKind
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from muster.domain.usage import UsageBy, UsageReport, UsageWish
from tests.builders import World, inventory, pass_time, spec
from tests.unit.coordinator.service.callers import Trusted, of_all, person
from tests.unit.coordinator.service.committed_engine import CommittedEngine

ADMIN = of_all(Access.ADMIN)
RED, NOBODY = person("red", red=Access.VIEWER), person("nobody")
GPU_HOUR = 3_600_000
DAY = timedelta(days=1)


class Fleet(NamedTuple):
    """Two projects in one department and one without, on two pools; `red` has run for an hour, `blue` runs."""

    world: World
    usage: UsageOperations
    ended: JobId
    runs: JobId


@asynccontextmanager
async def fleet() -> AsyncIterator[Fleet]:
    w = World(projects=("default", "red", "blue"))
    for pool in ("h100", "a100"):
        w.connect(pool, inventory(pool, 8, labels={"pool": pool}))
    w.change_units(
        QuotaUnit(name="research", kind=UnitKind.DEPARTMENT),
        QuotaUnit(name="red", kind=UnitKind.PROJECT, department="research"),
    )
    ended = w.running(spec(1, 4, project="red", name="train"))
    pass_time(w, 3600)
    w.tell_all(ended, Stage.EXITED, exit=Exit(code=0))
    runs = w.running(spec(1, 8, project="blue"))
    pass_time(w, 1800)
    past = StoredPast(w.store)
    yield Fleet(w, UsageOperations(Trusted().operations, cast("Engine", CommittedEngine(w)), past), ended, runs)
    past.close()


def hours(report: UsageReport) -> dict[str, float]:
    return {row.of: row.held.gpus / GPU_HOUR for row in report.rows}


async def test_what_has_ended_and_what_runs_is_told_the_largest_first() -> None:
    async with fleet() as (w, usage, ended, runs):
        by_project = await usage.report(ADMIN, UsageWish())
        w.delete(ended)
        deleted = await usage.report(ADMIN, UsageWish())
        by_job = await usage.report(ADMIN, UsageWish(by=UsageBy.JOB))

    assert hours(by_project) == {"red": 4, "blue": 4}
    assert deleted.rows == by_project.rows
    assert {(row.of, row.name, row.project) for row in by_job.rows} == {
        (ended, "train", "red"),
        (runs, "train", "blue"),
    }
    assert [row.attempts for row in by_job.rows] == [1, 1]


async def test_rows_are_departments_pools_users_or_classes() -> None:
    async with fleet() as (w, usage, *_):
        del w
        told = {by: hours(await usage.report(ADMIN, UsageWish(by=by))) for by in UsageBy if by is not UsageBy.JOB}

    assert told[UsageBy.DEPARTMENT] == {"research": 4, "": 4}
    assert sum(told[UsageBy.POOL].values()) == 8
    assert told[UsageBy.USER] == {"local": 8}
    assert told[UsageBy.CLASS] == {"guaranteed": 8}


async def test_spans_that_follow_each_other_add_up_and_nothing_comes_after_now() -> None:
    async with fleet() as (w, usage, *_):
        cuts = [w.now - DAY, w.now - timedelta(minutes=50), w.now - timedelta(minutes=7), w.now + DAY]
        parts = [
            hours(await usage.report(ADMIN, UsageWish(since=since, until=until))) for since, until in pairwise(cuts)
        ]
        last = await usage.report(ADMIN, UsageWish(until=w.now + DAY))

    assert sum(part.get("red", 0) for part in parts) == pytest.approx(4)
    assert sum(part.get("blue", 0) for part in parts) == pytest.approx(4)
    assert parts[1] == {"red": pytest.approx(4 * 20 / 60), "blue": pytest.approx(8 * 23 / 60)}
    assert last.until == w.now


async def test_waits_of_what_runs_and_of_what_has_ended_are_ranked_together() -> None:
    async with fleet() as (w, usage, *_):
        first = w.running(spec(1, 8, project="red"))
        w.submit(spec(1, 8, project="red"))
        pass_time(w, 600)
        w.tell_all(first, Stage.EXITED, exit=Exit(code=0))
        pass_time(w, 10)
        by_department = await usage.report(ADMIN, UsageWish(by=UsageBy.DEPARTMENT))
        later = await usage.report(ADMIN, UsageWish(since=w.now - timedelta(seconds=15)))

    told = {row.of: (row.median_wait, row.long_wait) for row in by_department.rows}
    assert told == {"research": (timedelta(0), timedelta(minutes=10)), "": (timedelta(0), timedelta(0))}
    assert {row.of: row.median_wait for row in later.rows} == {"red": timedelta(minutes=10), "blue": None}


async def test_what_is_borrowed_counts_while_it_runs() -> None:
    async with fleet() as (w, usage, _, runs):
        w.promise("blue", quota=6)
        pass_time(w, 600)
        [row] = (await usage.report(ADMIN, UsageWish(project="blue", by=UsageBy.JOB))).rows

    assert (row.of, row.borrowed) == (runs, 2 * GPU_HOUR // 6)
    assert (row.held.gpus, row.busy) == (8 * 2400 * 1000, None)


async def test_who_may_look_at_one_project_sees_that_one_alone() -> None:
    async with fleet() as (_, usage, ended, _):
        mine = await usage.report(RED, UsageWish())
        jobs = await usage.report(RED, UsageWish(by=UsageBy.JOB))
        with pytest.raises(UnknownNameError, match="there is no project"):
            await usage.report(RED, UsageWish(project="blue"))
        with pytest.raises(PermissionDeniedError):
            await usage.report(NOBODY, UsageWish())

    assert hours(mine) == {"red": 4}
    assert [row.of for row in jobs.rows] == [ended]


async def test_one_project_and_one_pool_are_asked_for() -> None:
    async with fleet() as (w, usage, ended, _):
        blue = await usage.report(ADMIN, UsageWish(project="blue"))
        pool = w.cluster.attempts[w.cluster.jobs[ended].attempt_id].pool
        of_pool = await usage.report(ADMIN, UsageWish(by=UsageBy.POOL, pool=pool))
        nowhere = await usage.report(ADMIN, UsageWish(pool="gone"))

    assert hours(blue) == {"blue": 4}
    assert list(hours(of_pool)) == [pool]
    assert nowhere.rows == ()


async def test_a_span_that_has_not_begun_or_ends_before_it_begins_is_refused() -> None:
    async with fleet() as (w, usage, *_):
        for wish in (UsageWish(since=w.now + DAY), UsageWish(since=w.now - DAY, until=w.now - 2 * DAY)):
            with pytest.raises(InvalidJobError, match="must be before until, and have passed"):
                await usage.report(ADMIN, wish)
