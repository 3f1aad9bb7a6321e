"""Jobs that start again and again: only so much is kept in memory; the store has more, and tells it when asked."""

import threading
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from coordinator.core.attempts.history import WHOLE_ATTEMPTS, WHOLE_EXECUTIONS, first_whole, is_whole, too_many
from coordinator.core.limits import Limits
from coordinator.core.records import Execution, Job
from coordinator.engine.engine import Engine
from coordinator.service.archive import READERS, StoredPast
from coordinator.service.watching.logs import LogMerge, LogWish
from coordinator.store.logs.logs import LogStore
from coordinator.store.records.memory import MemoryStore
from coordinator.views.jobs import job_view
from muster.domain.errors import ExhaustedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId, JobId, execution_id
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.view import JobView
from tests.builders import World, pass_time, report, spec
from tests.unit.coordinator.service.callers import Trusted, of_all
from tests.unit.coordinator.service.committed_engine import CommittedEngine
from tests.unit.coordinator.service.job_operations import job_operations

AGAIN = spec(2, gpus=1, restarts=RestartPolicy(limit=1000))
CRASH = Failure(kind=FailureKind.EXIT_CODE, message="ended with exit code 1", exit=Exit(code=1), log_tail=("oops",))
DRAINED = replace(CRASH, kind=FailureKind.DRAINED)
"""After this a job starts again at once, and as often as it happens."""


def fail_again(w: World, job: JobId, times: int, failure: Failure = DRAINED) -> None:
    """Both executions run and end, rank 0 with an error; each time another attempt follows."""
    for _ in range(times):
        if (w.attempt(job).not_before or w.now) > w.now:
            pass_time(w, 310)
        w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING, address="here")
        w.tell(job, 0, Stage.EXITED, exit=failure.exit, failure=failure, log_complete=True)
        w.tell(job, 1, Stage.EXITED, exit=Exit(code=143), log_complete=True)


def often(times: int = 60) -> tuple[World, JobId]:
    """A world of the test's own in which a job has started that often again."""
    return deepcopy(_often(times))


@cache
def _often(times: int) -> tuple[World, JobId]:
    w = World(("a", 2))
    job = w.submit(AGAIN)
    fail_again(w, job, times)
    assert w.attempt(job).number == times + 1
    return w, job


def test_the_first_attempt_and_the_newest_are_kept_in_memory_and_the_store_has_all() -> None:
    w, _ = often()

    kept = {execution.attempt for execution in w.cluster.executions.values()}
    assert kept == {1, *range(62 - WHOLE_ATTEMPTS, 62)}
    assert len(w.store.load().executions) == 61 * 2
    assert len([attempt for attempt in w.cluster.attempts.values() if attempt.failure]) == 60


def test_a_view_tells_of_every_attempt_and_of_the_executions_of_the_first_and_the_newest() -> None:
    w, job = often()

    view = job_view(w.cluster, job)

    assert [attempt.number for attempt in view.attempts] == list(range(1, 62))
    whole = [attempt.number for attempt in view.attempts if attempt.executions]
    assert whole == [1, *range(62 - WHOLE_ATTEMPTS, 62)]
    old = view.attempts[5]
    assert str(old.failure) == "rank 0 on a: ended with exit code 1"
    assert old.failure is not None
    assert old.failure.log_tail == ()


def attempts_in_store(w: World) -> set[int]:
    """Attempts of which the store has executions."""
    return {execution.attempt for execution in w.store.load().executions}


def test_a_new_attempt_drops_the_oldest_executions_between_the_first_and_the_newest() -> None:
    w = World(("a", 2))
    w.cluster.limits = Limits(stored=60)
    job = w.submit(AGAIN)

    fail_again(w, job, 30)
    assert attempts_in_store(w) == set(range(1, 32))
    fail_again(w, job, 20)

    assert attempts_in_store(w) == {1, *range(22, 52)}
    assert len([each for each in w.store.load().executions if each.attempt < 51]) == 60
    assert len(w.store.load().attempts) == 51
    dropped = [each.number for each in job_view(w.cluster, job).attempts if each.executions_dropped]
    assert dropped == list(range(2, 22))


def test_dropped_executions_stay_dropped_after_a_restart_of_the_coordinator() -> None:
    w = World(("a", 2))
    w.cluster.limits = Limits(stored=60)
    job = w.submit(AGAIN)
    fail_again(w, job, 40)

    w.restart()

    attempts = job_view(w.cluster, job, only=5).attempts
    assert [each.number for each in attempts if each.executions_dropped] == list(range(2, 12))
    assert attempts[4].executions == ()


def test_what_an_older_version_left_goes_bit_by_bit_and_nothing_in_memory_goes() -> None:
    w, job = often(40)
    w.cluster.limits = Limits(stored=2)
    left = []
    for _ in range(12):
        fail_again(w, job, 1)
        left.append(len(attempts_in_store(w)))

    assert left == [40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29]
    fail_again(w, job, 10)
    assert attempts_in_store(w) == {1, *range(first_whole(w.cluster.jobs[job]), w.attempt(job).number + 1)}


@pytest.mark.parametrize(("size", "attempts"), [(1, 2000), (100, 1000), (5000, 20), (10_000, 10)])
def test_a_job_keeps_the_executions_of_so_many_ended_attempts(size: int, attempts: int) -> None:
    w = World(("a", 0))
    job: Job = replace(w.cluster.jobs[w.submit(spec(1))], spec=spec(size), attempt=attempts + 1)

    assert list(too_many(job, (), Limits().stored)) == []
    if attempts * size == Limits().stored:
        assert list(too_many(replace(job, attempt=attempts + 2), (), Limits().stored)) == [2]


class HangingStore(MemoryStore):
    """A store that says nothing about executions until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def executions(self, job: JobId, attempt: int) -> tuple[Execution, ...]:
        self.let_go.wait(60)
        return super().executions(job, attempt)


async def asked(w: World, name: str, attempt: int) -> JobView:
    """A job as somebody is told of it who sees everything."""
    jobs = job_operations(cast("Engine", CommittedEngine(w)), Trusted(), StoredPast(w.store))
    return await jobs.get(of_all(Access.VIEWER), name, attempt)


@pytest.mark.parametrize("attempt", [1, 5, 60, 61])
async def test_whoever_asks_for_an_attempt_gets_its_executions_and_no_others(attempt: int) -> None:
    w, job = often()

    found = await asked(w, "train", attempt)

    assert [each.number for each in found.attempts if each.executions] == [attempt]
    assert len(found.attempts) == 61
    stored = [each for each in w.store.load().executions if each.attempt == attempt]
    assert [(each.id, each.state, each.exit) for each in found.attempts[attempt - 1].executions] == [
        (execution_id(job, attempt, each.rank), each.state, each.exit) for each in stored
    ]


async def test_of_a_dropped_attempt_one_is_told_so() -> None:
    w = World(("a", 2))
    w.cluster.limits = Limits(stored=60)
    job = w.submit(AGAIN)
    fail_again(w, job, 40)

    found = (await asked(w, job, 5)).attempts[4]

    assert (found.number, found.executions, found.executions_dropped) == (5, (), True)


async def test_an_attempt_that_never_was_is_unknown() -> None:
    w, job = often(30)

    with pytest.raises(UnknownNameError, match=f"job {job} has no attempt 32; its newest is 31"):
        await asked(w, job, 32)


async def test_a_store_that_hangs_holds_up_only_those_who_ask_for_old_attempts_and_not_for_long() -> None:
    w, job = often(30)
    store = HangingStore()
    old = StoredPast(store, patience=0.01)
    jobs, ada = job_operations(cast("Engine", CommittedEngine(w)), Trusted(), old), of_all(Access.VIEWER)
    try:
        for _ in range(READERS + 1):
            with pytest.raises(ExhaustedError, match="could not be read within"):
                await jobs.get(ada, job, 5)
        assert (await jobs.get(ada, job)).id == job
        assert (await jobs.get(ada, job, 31)).id == job
    finally:
        store.let_go.set()
        old.close()


def test_a_restart_brings_back_no_more_than_was_there() -> None:
    w, _ = often()
    before = set(w.cluster.executions)

    w.restart()

    assert set(w.cluster.executions) == before


def test_restarts_are_counted_over_all_attempts() -> None:
    w = World(("a", 2))
    job = w.submit(replace(AGAIN, restarts=RestartPolicy(limit=3)))
    fail_again(w, job, 2, CRASH)
    fail_again(w, job, WHOLE_ATTEMPTS + 5)
    assert w.cluster.jobs[job].gave_up == ""
    fail_again(w, job, 2, CRASH)

    assert w.cluster.jobs[job].gave_up == (
        "it was restarted 3 times after failures of its code, as often as the job allows"
    )


def test_a_job_with_old_attempts_is_deleted_whole() -> None:
    w, job = often(30)
    w.delete(job, force=True)
    w.tell_all(job, Stage.STOPPED) if job in w.cluster.jobs else None

    assert (w.cluster.jobs, w.cluster.attempts, w.cluster.executions) == ({}, {}, {})
    assert w.store.load().executions == ()


async def test_logs_of_an_old_attempt_are_read_as_before(tmp_path: Path) -> None:
    w, job = often(30)
    store = LogStore(tmp_path)
    for rank in range(2):
        line = f"2026-11-22T10:00:0{rank}.000000000Z stdout F rank {rank}\n"
        store.append(execution_id(job, 5, rank), 0, line.encode())
        store.finish(execution_id(job, 5, rank))
    merge = LogMerge(cast("Engine", CommittedEngine(w)), store)

    lines = [line async for batch in merge.lines(LogWish(job=job, attempt=5, follow=True)) for line in batch]

    assert [(line.rank, line.attempt, line.record.text) for line in lines] == [(0, 5, b"rank 0"), (1, 5, b"rank 1")]
    store.close()


def test_what_a_node_still_has_of_an_old_attempt_it_clears_away() -> None:
    w = World(("a", 2))
    job = w.submit(AGAIN)
    fail_again(w, job, 1)
    old = w.cluster.gangs.rank(AttemptId(job, 2), 0).id
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING, address="here")
    w.tell(job, 0, Stage.EXITED, exit=DRAINED.exit, failure=DRAINED)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=143), log_complete=True)
    assert w.cluster.executions[old].state is State.FAILED
    assert not w.cluster.executions[old].log_complete

    fail_again(w, job, WHOLE_ATTEMPTS)
    w.advance(1)

    assert old not in w.cluster.executions
    assert old not in w.followers[next(iter(w.cluster.nodes))].goals
    (stored,) = (execution for execution in w.store.load().executions if execution.id == old)
    assert stored.log_complete
    w.connect("a", reports=[report(old, Stage.EXITED, exit=Exit(code=1))])


@pytest.mark.parametrize(("size", "whole"), [(1, 20), (1000, 20), (5000, 4), (10_000, 2)])
def test_of_large_gangs_fewer_attempts_are_kept(size: int, whole: int) -> None:
    w = World(("a", 0))
    job: Job = replace(w.cluster.jobs[w.submit(spec(1))], spec=spec(size), attempt=100)

    assert first_whole(job) == 101 - whole
    assert [is_whole(job, number) for number in (1, 2, 100 - whole)] == [True, False, False]
    assert all(is_whole(job, number) for number in range(101 - whole, 101))
    assert whole * size <= WHOLE_EXECUTIONS
