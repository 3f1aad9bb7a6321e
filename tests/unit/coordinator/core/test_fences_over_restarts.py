"""What is left of a fence is left after a restart as well, whatever the wall clock shows then."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.attempts.restarts import LONGEST_RESTART_PAUSE
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import FENCE_NOTED_EVERY
from coordinator.core.loading import load
from coordinator.core.records import Attempt
from muster.domain.gangs.fence import PERMIT_ENDS_WITHIN
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import Timeouts
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, spec, stored_records

WEEK = timedelta(days=7)
PATIENT = spec(
    2,
    gpus=1,
    max_per_node=1,
    timeouts=Timeouts(lost_after=WEEK),
    on_disconnect=OnDisconnect.STOP,
    restarts=RestartPolicy(limit=9, infrastructure=9),
)
"""A job whose nodes may be silent for a week, so that what is cut off may run for as long."""


def fenced() -> tuple[World, JobId]:
    """A job of which another machine took a node: what the first one runs may go on for a week."""
    w, job = dying()
    w.tell(job, 1, Stage.STOPPED)
    assert w.attempt(job).number == 2
    return w, job


def dying() -> tuple[World, JobId]:
    """The same while its other execution is still being stopped."""
    w = World(("a", 1), ("b", 1), ("c", 1))
    job = w.running(PATIENT)
    w.disconnect("a")
    w.connect("a", identity="another machine")
    assert w.states(job) == [State.LOST, State.STOPPING]
    return w, job


def left(w: World, job: JobId) -> timedelta:
    """How long it is until another attempt may begin."""
    not_before = w.attempt(job).not_before
    return timedelta() if not_before is None else not_before - w.now


def restart(w: World, jump: timedelta) -> None:
    """Another coordinator starts, on a machine whose clock was set."""
    w.now += jump
    w.restart()


@pytest.mark.parametrize("days", [8, -8, 0])
def test_a_fence_of_a_week_is_one_of_a_week_after_a_restart_with_another_clock(days: int) -> None:
    w, job = fenced()
    assert left(w, job) == WEEK

    restart(w, timedelta(days=days))

    assert left(w, job) == WEEK


def test_what_is_over_of_a_fence_is_stored_once_a_minute() -> None:
    w, job = fenced()
    w.advance(FENCE_NOTED_EVERY.total_seconds() * 60 + 1)

    restart(w, timedelta(days=8))

    assert left(w, job) == WEEK - timedelta(hours=1)


@settings(max_examples=40, deadline=None)
@given(
    lives=st.lists(
        st.tuples(st.integers(0, 4000), st.timedeltas(timedelta(days=-30), timedelta(days=30))), min_size=1, max_size=4
    )
)
def test_no_course_of_restarts_and_clocks_shortens_a_fence_or_makes_it_much_longer(
    lives: list[tuple[int, timedelta]],
) -> None:
    w, job = fenced()
    true = timedelta()
    for seconds, jump in lives:
        w.advance(seconds)
        true += timedelta(seconds=seconds)
        restart(w, jump)

    assert WEEK - true <= left(w, job) <= WEEK - true + len(lives) * FENCE_NOTED_EVERY


@pytest.mark.parametrize("days", [8, -8])
def test_what_was_lost_before_a_restart_is_fenced_in_full_by_an_attempt_that_ends_after_it(days: int) -> None:
    w, job = dying()
    restart(w, timedelta(days=days))

    w.connect("b")

    assert (w.attempt(job).number, left(w, job)) == (2, WEEK)


def test_a_pause_does_not_outlast_the_longest_one_because_the_clock_was_put_back() -> None:
    w = World(("a", 1))
    job = w.running(replace(spec(1, gpus=1), restarts=RestartPolicy(limit=9)))
    for _ in range(2):
        w.tell_all(job, Stage.RUNNING, Stage.EXITED, address="here", exit=Exit(code=1))
    assert (w.states(job), left(w, job)) == ([State.QUEUED], timedelta(seconds=5))

    restart(w, timedelta(days=-8))

    assert left(w, job) == LONGEST_RESTART_PAUSE


def test_records_that_do_not_say_how_much_of_a_fence_was_left_wait_for_the_whole_of_it() -> None:
    w, job = fenced()
    records = [
        replace(record, fence_noted_at=None) if isinstance(record, Attempt) else record
        for record in stored_records(w.store)
    ]

    cluster: Cluster = load(records, w.now + timedelta(days=8))

    not_before = cluster.newest_attempt(job).not_before
    assert not_before == w.now + timedelta(days=8) + WEEK + PERMIT_ENDS_WITHIN
