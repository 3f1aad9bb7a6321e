"""What attempts have held, as it is stored when they end."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.events import UnholdRequested
from coordinator.core.spent import SPENT_WORDS, Spent, SpentSums, SpentWish, longest_waits
from muster.domain.fleet.quota import Amounts
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import State
from tests.builders import AT, World, inventory, pass_time, spec
from tests.spending_invariants import SpendingWitness
from tests.unit.coordinator.core.eviction.eviction_world import ended, of, running, world

LATER = AT + timedelta(days=365)
HOUR = timedelta(hours=1)


def sums(w: World, **wish: object) -> SpentSums:
    return w.store.spent(SpentWish(**{"since": None, "until": LATER, "words": SPENT_WORDS, "most": 99, **wish}))  # type: ignore[arg-type]  # a builder takes any field


def waits(w: World) -> list[int]:
    """What all attempts have waited that have ended, in milliseconds."""
    found = w.store.waits(SpentWish(since=None, until=LATER, words=("job",), most=99), w.now)
    return [wait for group in found for wait in group.waits]


def end(w: World, job: JobId) -> None:
    w.tell_all(job, Stage.EXITED, exit=Exit(code=0))


def test_what_a_job_has_held_is_stored_when_it_ends_with_whose_it_was() -> None:
    w = World()
    w.connect("n1", inventory("n1", 8, labels={"pool": "h100"}))
    job = w.running(spec(2, 4))
    pass_time(w, 100)
    assert sums(w).groups == ()
    end(w, job)

    [group] = sums(w).groups
    assert (group.job, group.project, group.owner, group.pool) == (job, "default", "local", "h100")
    assert (group.job_class, group.attempts, group.evicted, group.lost) == ("guaranteed", 1, 0, 0)
    assert group.held.gpus == 8000 * 100


def test_accounts_that_leave_something_out_are_found() -> None:
    w, witness = World(("n1", 8)), SpendingWitness()
    job = w.running(spec(2, 4))
    witness.see(w.cluster, w.store.spent, w.now)
    pass_time(w, 100)
    end(w, job)

    with pytest.raises(AssertionError, match=r"and the accounts say \{\}"):
        witness.see(w.cluster, lambda _: SpentSums(), w.now)


def test_executions_that_end_earlier_have_held_less() -> None:
    w = World(("n1", 8))
    job = w.running(spec(2, 4))
    pass_time(w, 10)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0))
    pass_time(w, 30)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=0))
    assert sums(w).groups[0].held.gpus == 4000 * 10 + 4000 * 40


def test_what_was_used_outlives_the_job_and_restarts_of_the_coordinator() -> None:
    w = World(("n1", 8))
    job = w.running(spec(1, 1))
    pass_time(w, 60)
    end(w, job)
    before = sums(w)
    w.delete(job)
    w.restart()
    assert job not in w.cluster.jobs
    assert sums(w) == before != SpentSums()


def test_a_job_that_was_never_placed_has_used_nothing() -> None:
    w = World()
    job = w.submit(spec(1, 1), queue_anyway=True)
    pass_time(w, 60)
    w.stop(job)
    assert sums(w) == SpentSums()


def test_each_attempt_is_a_row_and_an_evicted_one_lost_what_came_after_its_checkpoint() -> None:
    w = world(("n1", 8))
    a = running(w, *[of("a")] * 4)
    pass_time(w, 60)
    saved = w.now
    w.tell(a[3], 0, Stage.RUNNING, saved_at=saved)
    pass_time(w, 40)
    w.submit(of("b"))
    ended(w, a[3])
    attempt = w.cluster.attempts[w.cluster.jobs[a[3]].attempt_id._replace(number=1)]
    [group] = [each for each in sums(w).groups if each.job == a[3]]
    assert attempt.failure is not None
    assert attempt.failure.kind is FailureKind.PREEMPTED
    assert (group.evicted, group.job_class) == (1, JobClass.PREEMPTIBLE)
    assert group.lost == 2000 * 40
    assert group.held.gpus > group.lost


def test_all_that_a_lost_node_ran_counts_until_it_was_lost() -> None:
    w = World(*((name, 2) for name in "abc"))
    job = w.running(spec(3, 2, max_per_node=1))
    pass_time(w, 90, NodeId("a"))
    assert w.states(job)[0] is State.LOST
    pass_time(w, 10, NodeId("a"))
    for rank in (1, 2):
        w.tell(job, rank, Stage.EXITED, exit=Exit(code=143))

    [group] = sums(w).groups
    assert group.held.gpus == 2000 * (90 + 100 + 100)
    assert group.lost == group.held.gpus


def test_cpus_and_memory_are_counted_beside_gpus() -> None:
    w = World(("n1", 8))
    job = w.running(spec(1, cpus=1.5, memory=3 << 20))
    pass_time(w, 10)
    end(w, job)
    assert sums(w).groups[0].held == Amounts(0, 15_000, 30)


def spent(held: int, lost: int, seconds: float) -> Spent:
    return Spent(
        job=JobId("j"),
        attempt=1,
        name="j",
        project="a",
        owner="ann",
        pool="p",
        job_class="spare",
        outcome="exit_code",
        held=Amounts(held, held // 3, held * 7),
        lost=lost,
        placed_at=AT,
        ended_at=AT + timedelta(seconds=seconds),
    )


moments = st.floats(-100, 10_000).map(lambda seconds: AT + timedelta(seconds=seconds))


@given(st.integers(0, 10**12), st.integers(0, 100), st.floats(0, 5_000), st.lists(moments, max_size=6))
def test_parts_of_spans_that_follow_each_other_add_up_to_the_whole(
    held: int, percent: int, seconds: float, cuts: list[datetime]
) -> None:
    whole = spent(held, held * percent // 100, seconds)
    edges = [AT - HOUR, *sorted(cuts), AT + timedelta(days=1)]
    parts = [whole.within(since, until) for since, until in pairwise(edges)]
    assert tuple(map(sum, zip(*(part.held for part in parts), strict=True))) == whole.held
    assert sum(part.lost for part in parts) == whole.lost
    assert all(0 <= part.lost <= part.held.gpus for part in parts)


def test_what_was_lost_is_the_end_of_an_attempt() -> None:
    attempt = spent(1000, 250, 100)
    assert attempt.within(None, AT + timedelta(seconds=75)).lost == 0
    assert attempt.within(AT + timedelta(seconds=75), LATER).lost == 250


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=300))
def test_so_many_of_a_hundred_waits_are_not_longer(told: list[int]) -> None:
    median, most = longest_waits(told)
    assert {median, most} <= set(told)
    for longest, percent in ((median, 50), (most, 95)):
        assert 100 * sum(wait <= longest for wait in told) >= percent * len(told)
        assert 100 * sum(wait < longest for wait in told) < percent * len(told)


def test_many_waits_are_ranked_as_few_are() -> None:
    assert longest_waits([*range(50_000, 0, -1), *range(50_001, 100_001)]) == (50_000, 95_000)
    assert longest_waits([7]) == (7, 7)


def test_what_an_attempt_waited_is_its_time_in_the_queue_also_over_restarts_of_the_coordinator() -> None:
    w = World()
    job = w.submit(spec(1, 1), queue_anyway=True)
    pass_time(w, 60)
    w.restart()
    pass_time(w, 30)
    w.connect("n1", inventory("n1", 1))
    end(w, job)
    assert waits(w) == [90_000]


def test_time_on_hold_is_no_wait() -> None:
    w = World(("n1", 1))
    job = w.submit(spec(1, 1, hold=True))
    pass_time(w, 60)
    w.turn(UnholdRequested(job=job))
    end(w, job)
    assert waits(w) == [0]


def test_busy_time_is_what_agents_told_last_also_of_nodes_that_are_lost() -> None:
    w = World(*((name, 2) for name in "ab"))
    job = w.running(spec(2, 2, max_per_node=1))
    w.tell(job, 0, Stage.RUNNING, gpu_busy_ms=5_000)
    w.tell(job, 1, Stage.RUNNING, gpu_busy_ms=7_000)
    pass_time(w, 90, w.seat(job))
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=143), gpu_busy_ms=70_000)
    assert [group.busy for group in sums(w).groups] == [75_000]


def test_busy_time_never_goes_back_and_is_never_more_than_what_was_held() -> None:
    w = World(("n1", 2))
    job = w.running(spec(1, 2))
    w.tell(job, 0, Stage.RUNNING, gpu_busy_ms=9_000)
    w.tell(job, 0, Stage.RUNNING, gpu_busy_ms=4_000)
    assert w.rank(job, 0).gpu_busy_ms == 9_000
    pass_time(w, 10)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), gpu_busy_ms=10**9)
    assert [(group.busy, group.held.gpus) for group in sums(w).groups] == [(20_000, 20_000)]


def test_where_no_agent_told_busy_time_is_not_known() -> None:
    w = World(("n1", 2))
    job = w.running(spec(1, 2))
    pass_time(w, 10)
    end(w, job)
    assert [group.busy for group in sums(w).groups] == [None]
