"""The longest run of a pool: who is refused, who goes elsewhere, and what is stopped."""

from datetime import timedelta

import pytest

from coordinator.core.answers import PoolKept, RefusalCause, Refused
from coordinator.core.events import PoolRemoved, PoolSet
from coordinator.views.explain import explain
from coordinator.views.jobs import job_view
from muster.domain.fleet.pool import Pool
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.placing.pool_choice import PoolChoice
from tests.builders import AT, World, inventory, pass_time, report, spec

HOUR = timedelta(hours=1)
DEBUG, LONG = PoolChoice(pool="debug"), PoolChoice(pool="long")


def fleet(*pools: str) -> World:
    """A node with two GPUs in each pool, called like it; nothing runs longer than two hours in `debug`."""
    w = World()
    for pool in pools:
        w.connect(pool, inventory(pool, 2, labels={"pool": pool}))
    put(w, 2 * HOUR)
    return w


def put(w: World, longest_run: timedelta | None) -> None:
    assert isinstance(w.turn(PoolSet(pool=Pool(name="debug", longest_run=longest_run)))[0], PoolKept)


def wanting(run: timedelta | None, *pools: PoolChoice) -> JobSpec:
    return spec(1, gpus=2, timeouts=Timeouts(run=run), pools=pools)


def start(w: World, job: JobId) -> None:
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)


def test_a_job_that_may_run_for_longer_than_its_pool_lets_it_is_refused() -> None:
    w = fleet("debug", "long")

    answer = w.try_submit(wanting(3 * HOUR, DEBUG))

    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.IMPOSSIBLE
    assert answer.message == "it may run for 3h (timeouts.run), and in pool debug nothing runs longer than 2h"
    assert w.seats(w.submit(wanting(2 * HOUR, DEBUG))) == ["debug"]


def test_a_job_that_names_no_pool_is_refused_if_it_may_run_too_long_in_all_of_them() -> None:
    w = fleet("debug")
    assert isinstance(w.try_submit(wanting(3 * HOUR)), Refused)


@pytest.mark.parametrize("pools", [(DEBUG, LONG), ()], ids=["that are named", "of any name"])
def test_a_job_goes_to_the_pools_in_which_it_may_run_for_so_long(pools: tuple[PoolChoice, ...]) -> None:
    w = fleet("debug", "long")

    assert [w.seats(w.submit(wanting(3 * HOUR, *pools))) for _ in range(2)] == [["long"], [None]]
    assert w.seats(w.submit(wanting(None, DEBUG))) == ["debug"]


def test_what_waits_in_vain_is_told_why_and_goes_on_once_it_may_run_as_long() -> None:
    w = fleet("debug")
    job = w.submit(wanting(3 * HOUR, DEBUG), queue_anyway=True)
    others = [w.submit(wanting(3 * HOUR, DEBUG), queue_anyway=True) for _ in range(3)]
    told = explain(w.cluster, job, AT).summary

    put(w, 3 * HOUR)

    assert told == "it may run for 3h (timeouts.run), and in pool debug nothing runs longer than 2h"
    assert w.seats(job) == ["debug"]
    w.turn(PoolRemoved(name="debug"))
    w.delete(job, force=True)
    w.tell_all(job, Stage.STOPPED)
    assert w.seats(others[0]) == ["debug"]


def test_a_job_behind_one_that_may_run_too_long_is_placed() -> None:
    w = fleet("debug")
    w.submit(wanting(3 * HOUR, DEBUG), queue_anyway=True)
    assert w.seats(w.submit(wanting(HOUR, DEBUG))) == ["debug"]


@pytest.mark.parametrize("restarts", [False, True], ids=["at one go", "over a restart of the coordinator"])
def test_a_job_without_a_limit_ends_after_the_longest_run_of_its_pool(restarts: bool) -> None:
    w = fleet("debug")
    job = w.submit(wanting(None, DEBUG))
    placed = job_view(w.cluster, job).summary
    start(w, job)
    running = job_view(w.cluster, job).summary
    put(w, HOUR)  # what runs keeps what it was placed with
    pass_time(w, 7100)
    assert w.cluster.newest_attempt(job).failure is None
    if restarts:
        w.restart()
        runs = report(w.rank(job, 0).id, Stage.RUNNING)
        w.connect("debug", inventory("debug", 2, labels={"pool": "debug"}), reports=[runs])
    pass_time(w, 110)

    failure = w.cluster.newest_attempt(job).failure
    assert failure is not None
    assert (failure.kind, failure.message) == (
        FailureKind.TIME_LIMIT,
        "still ran after 7200 s, the longest run in pool debug",
    )
    assert placed.endswith("nothing runs longer than 2h in pool debug")
    assert running.endswith("; nothing runs longer than 2h in pool debug, so it ends by 2026-11-21 11:00:00 UTC")


def test_a_job_with_a_shorter_limit_keeps_its_own() -> None:
    w = fleet("debug")
    job = w.submit(wanting(HOUR, DEBUG))
    start(w, job)
    assert "longer" not in job_view(w.cluster, job).summary
    pass_time(w, 3610)

    failure = w.cluster.newest_attempt(job).failure
    assert failure is not None
    assert failure.message == "still ran after 3600 s, the job's limit (timeouts.run)"


def test_how_long_others_still_run_in_a_pool_tells_nothing_of_a_job_that_never_goes_there() -> None:
    w = fleet("debug", "long")
    start(w, w.submit(wanting(HOUR, DEBUG)))
    start(w, w.submit(wanting(None, LONG)))
    job = w.submit(wanting(3 * HOUR))

    told = explain(w.cluster, job, w.now)

    assert {each.pool: each.reason for each in told.pools}["debug"] == (
        "it may run for 3h (timeouts.run), and in pool debug nothing runs longer than 2h"
    )
