"""Windows: nodes that are out of service, or for one project alone, from a time to a time."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.answers import Answer, RefusalCause, Refused, WindowGone, WindowKept
from coordinator.core.events import WindowRemoved, WindowSet
from coordinator.core.scheduling.windows import closed
from coordinator.views.explain import explain
from muster.domain.fleet.window import MOST_WINDOWS, Window
from muster.domain.gangs.plan import Stage
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import AT, World, inventory, pass_time, spec

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def window(*nodes: str, begins: timedelta = 6 * HOUR, ends: timedelta = 8 * HOUR, **fields: Any) -> Window:
    named = tuple(map(NodeId, nodes))
    return Window(**{"name": "w", "nodes": named, "begins": AT + begins, "ends": AT + ends, **fields})


def put(w: World, what: Window) -> Answer:
    return w.turn(WindowSet(window=what))[0]


def limited(run: timedelta | None, **fields: Any) -> JobSpec:
    return spec(1, 1, timeouts=Timeouts(check_in=10 * MINUTE, run=run), **fields)


@pytest.mark.parametrize(
    ("run", "placed"),
    [(5 * HOUR, True), (5 * HOUR + 50 * MINUTE, True), (6 * HOUR, False), (None, False)],
    ids=["5 h", "5 h 50 min", "6 h", "no limit"],
)
def test_before_a_window_only_what_ends_in_time_is_placed(run: timedelta | None, placed: bool) -> None:
    """Scenario W1: a window in six hours, and ten minutes to check in."""
    w = World(("n1", 1))
    put(w, window("n1"))
    assert (w.phase(w.submit(limited(run))) is JobPhase.PREPARING) is placed


def test_a_window_that_is_further_away_than_its_notice_closes_nothing() -> None:
    w = World(("n1", 1))
    put(w, window("n1", begins=25 * HOUR, ends=26 * HOUR))
    assert w.phase(w.submit(limited(None))) is JobPhase.PREPARING


def test_what_waits_for_the_end_of_a_window_is_placed_then_and_the_window_goes() -> None:
    w = World(("n1", 1))
    put(w, window("n1", begins=timedelta(seconds=-10), ends=timedelta(seconds=100)))
    job = w.submit(limited(None))
    pass_time(w, 90)
    assert w.phase(job) is JobPhase.QUEUED

    pass_time(w, 20)

    assert w.phase(job) is JobPhase.PREPARING
    assert list(w.cluster.load.windows) == []


def test_jobs_take_other_nodes_meanwhile_and_what_runs_is_left_alone() -> None:
    w = World(("n1", 1))
    first = w.running(limited(None))
    put(w, window("n1", begins=timedelta(seconds=60), ends=HOUR))
    w.connect("n2", inventory("n2", 1))
    second = w.submit(limited(None))
    pass_time(w, 120)
    assert (w.seat(first), w.seat(second)) == ("n1", "n2")
    assert w.phase(first) is JobPhase.RUNNING


def test_a_window_for_a_project_takes_its_jobs_alone() -> None:
    w = World(("n1", 1), projects=("default", "vision"))
    put(w, window("n1", begins=timedelta(seconds=-1), project="vision"))
    others, theirs = w.submit(limited(None)), w.submit(limited(None, project="vision"))
    assert (w.phase(others), w.phase(theirs)) == (JobPhase.QUEUED, JobPhase.PREPARING)


def test_a_window_by_labels_has_the_nodes_that_carry_them_also_those_that_come_later() -> None:
    w = World()
    put(w, window(labels={"rack": "7"}, begins=timedelta(seconds=-1)))
    w.connect("a", inventory("a", 1, labels={"rack": "7", "zone": "x"}))
    job = w.submit(limited(None))
    assert w.phase(job) is JobPhase.QUEUED

    w.change_inventory("a", labels={"rack": "8"})

    assert w.phase(job) is JobPhase.PREPARING


def test_a_window_that_is_removed_or_moved_opens_its_nodes_at_once() -> None:
    w = World(("n1", 2))
    put(w, window("n1", begins=timedelta(seconds=-1)))
    first, second = w.submit(limited(None)), w.submit(spec(1, 2))
    put(w, window("n1", begins=48 * HOUR, ends=50 * HOUR))
    assert w.phase(first) is JobPhase.PREPARING
    w.tell_all(first, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    put(w, window("n1", begins=timedelta(seconds=-1)))
    w.tell(first, 0, Stage.EXITED, log_complete=True)
    assert w.phase(second) is JobPhase.QUEUED

    answer = w.turn(WindowRemoved(name="w"))[0]

    assert isinstance(answer, WindowGone)
    assert w.phase(second) is JobPhase.PREPARING


def test_jobs_that_differ_in_their_limit_alone_are_tried_each_by_itself() -> None:
    w = World(("n1", 4))
    put(w, window("n1"))
    long, short = w.submit(limited(None)), w.submit(limited(HOUR))
    assert (w.phase(long), w.phase(short)) == (JobPhase.QUEUED, JobPhase.PREPARING)


def test_nothing_is_kept_for_the_head_on_nodes_that_a_window_closes_to_it() -> None:
    w = World(("n1", 2), ("n2", 2))
    runs = [w.running(spec(1, 2, timeouts=Timeouts(run=HOUR))) for _ in range(2)]
    put(w, window("n1"))
    head = w.submit(spec(1, 2))
    kept = w.cluster.load.reservation
    assert kept is not None
    assert (kept.job, set(kept.nodes)) == (head, {"n2"})

    put(w, window("n1", "n2"))
    w.tell(runs[0], 0, Stage.EXITED, log_complete=True)

    assert w.cluster.load.reservation is None
    assert w.phase(head) is JobPhase.QUEUED


def test_why_names_the_window_and_its_times() -> None:
    w = World(("n1", 1), ("n2", 1))
    put(w, window("n1", reason="new disks"))
    put(w, window("n2", name="v", begins=timedelta(seconds=-1)))
    job = w.submit(limited(6 * HOUR))
    told = {refusal.node: refusal.reason for refusal in explain(w.cluster, job, w.now).refusals}
    assert told == {
        "n1": "is out of service from 2026-11-21 15:00:00 UTC (new disks), and the job may end later "
        "(timeouts.check_in 10m, timeouts.run 6h): window w",
        "n2": "is out of service until 2026-11-21 17:00:00 UTC: window v",
    }


def test_windows_survive_a_restart_and_end_afterwards() -> None:
    w = World(("n1", 1))
    put(w, window("n1", begins=timedelta(seconds=-1), ends=timedelta(seconds=60)))
    job = w.submit(limited(None))
    w.restart()
    w.connect("n1")
    assert w.phase(job) is JobPhase.QUEUED
    pass_time(w, 70)
    assert w.phase(job) is JobPhase.PREPARING


def test_a_window_that_is_over_of_no_project_or_one_too_many_is_refused() -> None:
    w = World()
    over = put(w, window("n1", begins=-2 * HOUR, ends=-HOUR))
    assert isinstance(over, Refused)
    assert over.message == "window w would be over already"
    nowhere = put(w, window("n1", project="nowhere"))
    assert isinstance(nowhere, Refused)
    assert nowhere.cause is RefusalCause.UNKNOWN
    w.turn(*(WindowSet(window=window("n1", name=f"w{number}")) for number in range(MOST_WINDOWS)))
    many = put(w, window("n1"))
    assert isinstance(many, Refused)
    assert many.cause is RefusalCause.EXHAUSTED
    assert isinstance(put(w, window("n2", name="w0")), WindowKept), "one that is there can be changed"
    gone = w.turn(WindowRemoved(name="none"))[0]
    assert isinstance(gone, Refused)


@given(
    run=st.none() | st.integers(1, 1000),
    check_in=st.integers(1, 1000),
    begins=st.integers(-1000, 3000),
    length=st.integers(1, 2000),
    notice=st.integers(0, 2000),
)
def test_whatever_is_placed_ends_before_the_window_or_begins_after_it(
    run: int | None, check_in: int, begins: int, length: int, notice: int
) -> None:
    def seconds(count: int) -> timedelta:
        return timedelta(seconds=count)

    wanted = spec(1, timeouts=Timeouts(check_in=seconds(check_in), run=None if run is None else seconds(run)))
    of = window("n", begins=seconds(begins), ends=seconds(begins + length), notice=seconds(notice))
    within_notice = begins - notice <= 0 < begins + length
    ends_in_time = run is not None and check_in + run <= begins
    assert closed(of, wanted, AT) == (within_notice and not ends_in_time)
