"""Left alone, a fleet comes to rest, and then everybody who waits is told a reason that is true."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.scheduling.cycle import refusal
from coordinator.views.explain import explain
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World
from tests.unit.coordinator.core.random_courses import any_job, end_all, fleet, start_all

MOST_PER_JOB = 4
"""Rounds in which something changes, for each job, at the most."""


def settle(w: World) -> int:
    """Have agents do as they are told until nothing changes; how many rounds that took."""
    rounds = 0
    while start_all(w) | end_all(w):
        rounds += 1
        assert rounds < MOST_PER_JOB * len(w.cluster.jobs), "it does not come to rest"
    return rounds


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_nothing_goes_round_where_no_events_come(seed: int) -> None:
    random = Random(seed)
    w = fleet(random)
    for _ in range(random.randint(3, 12)):
        w.submit(any_job(random), queue_anyway=True)
        if random.random() < 0.3:
            settle(w)
    settle(w)
    before = {job: (w.phase(job), w.seats(job)) for job in w.cluster.jobs}
    w.turn()
    assert {job: (w.phase(job), w.seats(job)) for job in w.cluster.jobs} == before


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_each_job_that_waits_is_told_a_reason_that_is_true(seed: int) -> None:
    random = Random(seed)
    w = fleet(random)
    for _ in range(random.randint(3, 12)):
        w.submit(any_job(random), queue_anyway=True)
    settle(w)
    for job in (job for job in w.cluster.jobs if w.phase(job) is JobPhase.QUEUED):
        told = explain(w.cluster, job, w.now).summary
        fits, kept = refusal(w.cluster, job, w.now) is None, w.cluster.load.reservation
        assert told, f"{job} is told nothing"
        assert "about to be placed" not in told, f"{job} fits, and waits"
        if "is kept for" in told and told.startswith("would fit"):
            assert fits
            assert kept is not None
            assert kept.job != job
        if told.startswith("needs room"):
            assert not fits
