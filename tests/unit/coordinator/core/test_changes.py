"""Submitted jobs that are changed."""

from dataclasses import replace

from coordinator.core.answers import Accepted, Refused
from muster.domain.jobs.job import Timeouts
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.queueing.change import WITHOUT_LIMIT
from tests.builders import AT, World, pass_time, spec
from tests.unit.coordinator.core.orders import HOUR, change, refusal


def test_a_queued_job_with_another_priority_has_another_place() -> None:
    w = World()
    first, second = (w.submit(spec(1), queue_anyway=True) for _ in range(2))
    change(w, second, priority=5)
    assert [w.cluster.queue.position(job) for job in (first, second)] == [2, 1]


def test_a_change_of_limits_counts_from_then_on() -> None:
    w = World()
    job = w.submit(spec(1, timeouts=Timeouts(queue=HOUR, run=HOUR)), queue_anyway=True)
    change(w, job, queue=2 * HOUR, run=WITHOUT_LIMIT, expected=3 * HOUR)
    assert w.cluster.jobs[job].spec.timeouts == Timeouts(queue=2 * HOUR, expected=3 * HOUR)
    w.advance(7199)
    assert w.phase(job) is JobPhase.QUEUED
    w.advance(1)
    assert w.phase(job) is JobPhase.FAILED


def test_a_job_gets_another_time_to_begin() -> None:
    w = World(("a", 1))
    job = w.submit(spec(1, 1, not_before=AT + HOUR))
    change(w, job, not_before=AT + 2 * HOUR)
    pass_time(w, 3610)
    assert w.phase(job) is JobPhase.WAITING
    change(w, job, not_before=w.now)
    assert w.phase(job) is JobPhase.PREPARING


def test_while_a_job_has_nodes_only_its_priority_changes() -> None:
    w = World(("a", 1))
    job = w.running(spec(1, 1))
    assert isinstance(change(w, job, priority=7), Accepted)
    assert w.cluster.jobs[job].spec.priority == 7
    assert refusal(change(w, job, priority=8, run=HOUR)) == (
        f"job {job} has its nodes already (running); only its priority can be changed now"
    )
    assert w.cluster.jobs[job].spec.priority == 7


def test_a_change_that_breaks_a_rule_is_refused_and_changes_nothing() -> None:
    w = World()
    job = w.submit(spec(1, timeouts=Timeouts(run=HOUR)), queue_anyway=True)
    assert refusal(change(w, job, priority=1001)) == "priority: must be at most 1000, not 1001"
    assert refusal(change(w, job, expected=2 * HOUR)) == (
        "timeouts.expected: is longer than the job may run (timeouts.run: 1h)"
    )
    assert w.cluster.jobs[job].changes == 0


def test_the_same_submit_is_the_same_job_also_after_a_change() -> None:
    w = World()
    job = w.submit(spec(1), queue_anyway=True, idempotency_key="k")
    change(w, job, priority=5)
    assert w.submit(spec(1), queue_anyway=True, idempotency_key="k") == job
    again = w.try_submit(replace(spec(1), priority=5), queue_anyway=True, idempotency_key="k")
    assert isinstance(again, Refused)
