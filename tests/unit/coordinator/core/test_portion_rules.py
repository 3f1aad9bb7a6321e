"""What becomes of jobs that use more GPU memory than their portion, as pools say."""

import pytest

from coordinator.core.events import PoolSet
from muster.domain.event import JobEventKind
from muster.domain.fleet.pool import Pool, PortionRule
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, spec

MESSAGE = "uses 31.0 GiB of the memory of GPU-a, and its portion is 20.0 GiB"


def told(w: World, job: JobId) -> list[str]:
    return [event.text for event in w.store.events(job, 0, 100) if event.kind is JobEventKind.GPU_MEMORY]


@pytest.mark.parametrize(
    ("pool", "rule"),
    [(None, PortionRule.TELL), (Pool(name="default", enforce=PortionRule.STOP), PortionRule.STOP)],
)
def test_agents_are_told_what_the_pool_says_at_the_placement(pool: Pool | None, rule: PortionRule) -> None:
    w = World(("n1", 2))
    if pool is not None:
        w.turn(PoolSet(pool=pool))
    job = w.submit(spec(1, 1))
    [line] = w.last_plan("n1").desired
    assert line.assignment is not None
    assert line.assignment.enforce is rule

    w.turn(PoolSet(pool=Pool(name="default")))
    w.disconnect("n1")
    w.connect("n1")
    [again] = w.last_plan("n1").desired
    assert again.assignment is not None
    assert again.assignment.enforce is w.attempt(job).enforce is rule


def test_the_first_rank_that_uses_more_than_its_portion_is_an_event() -> None:
    w = World(("n1", 2))
    job = w.running(spec(2, 1))
    w.tell(job, 1, Stage.RUNNING, over_portion=MESSAGE)
    w.tell(job, 0, Stage.RUNNING, over_portion=MESSAGE)
    w.tell(job, 1, Stage.RUNNING, over_portion=MESSAGE)
    assert told(w, job) == [f"rank 1 on n1 {MESSAGE}; nothing stops it"]
    assert w.phase(job) is JobPhase.RUNNING


def test_where_it_is_stopped_the_event_says_so_and_the_job_fails_by_its_own_fault() -> None:
    w = World(("n1", 2))
    w.turn(PoolSet(pool=Pool(name="default", enforce=PortionRule.STOP)))
    job = w.running(spec(1, 1))
    w.tell(job, 0, Stage.RUNNING, over_portion=MESSAGE)
    failure = Failure(kind=FailureKind.GPU_MEMORY, message=MESSAGE, exit=Exit(code=143))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=143), failure=failure, over_portion=MESSAGE)

    assert told(w, job) == [f"rank 0 on n1 {MESSAGE}; it is stopped"]
    failed = w.attempt(job).failure
    assert w.phase(job) is JobPhase.FAILED
    assert failed is not None
    assert failed.kind is FailureKind.GPU_MEMORY
