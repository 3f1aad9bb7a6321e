"""Submitted jobs that are sent to other pools, or get another class."""

from typing import Any

import pytest

from coordinator.core.answers import Accepted, RefusalCause, Refused
from coordinator.core.events import PoolSet
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import AmountBounds, QuotaTerms, QuotaUnit, UnitKind, UnitTerms
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.queueing.change import WITHOUT_LIMIT, JobChange, differences
from tests.builders import World, inventory, pass_time, spec
from tests.unit.coordinator.core.eviction.eviction_world import of, running, world
from tests.unit.coordinator.core.orders import HOUR, change, refusal

H100, A100 = PoolChoice(pool="h100"), PoolChoice(pool="a100")


def fleet(**gpus: int) -> World:
    """A node in each pool, called like it, with so many GPUs."""
    w = World()
    for pool, count in gpus.items():
        w.connect(pool, inventory(pool, count, labels={"pool": pool}))
    return w


def wanting(gpus: int, *pools: PoolChoice, **fields: Any) -> JobSpec:
    return spec(1, gpus, pools=pools, **fields)


def waiting_in(w: World, project: str = "default") -> dict[str, int]:
    """How many GPUs a project waits for, by pool."""
    w.cluster.unit_load.settle()
    units = w.cluster.unit_load.units
    return {pool: units.path(project, pool)[-1].waiting[0] // 1000 for pool in ("h100", "a100")}


def test_a_queued_job_that_is_sent_to_another_pool_is_placed_there_at_once() -> None:
    w = fleet(h100=1, a100=1)
    w.submit(wanting(1, H100))
    job = w.submit(wanting(1, H100))
    assert w.seats(job) == [None]
    assert isinstance(change(w, job, pools=(A100,)), Accepted)
    assert w.seats(job) == ["a100"]


def test_a_job_that_may_go_anywhere_does() -> None:
    w = fleet(h100=1, a100=1)
    w.submit(wanting(1, H100))
    job = w.submit(wanting(1, H100))
    change(w, job, pools=())
    assert w.seats(job) == ["a100"]


def test_the_time_until_a_later_pool_counts_from_when_the_job_was_queued_not_from_the_change() -> None:
    w = fleet(h100=1, a100=1)
    w.submit(wanting(1, H100))
    job = w.submit(wanting(1, H100))
    pass_time(w, 3000)
    change(w, job, pools=(H100, PoolChoice(pool="a100", after=HOUR)))
    pass_time(w, 590)
    assert w.seats(job) == [None]
    pass_time(w, 10)
    assert w.seats(job) == ["a100"]


def test_a_later_pool_whose_time_has_passed_is_open_at_once() -> None:
    w = fleet(h100=1, a100=1)
    w.submit(wanting(1, H100))
    job = w.submit(wanting(1, H100))
    pass_time(w, 3600)
    change(w, job, pools=(H100, PoolChoice(pool="a100", after=HOUR)))
    assert w.seats(job) == ["a100"]


def test_what_a_changed_job_waits_for_counts_in_its_new_pool_and_once_alone() -> None:
    w = fleet(h100=4, a100=2)
    w.submit(wanting(4, H100))
    w.submit(wanting(2, A100))
    job = w.submit(wanting(1, H100))
    assert waiting_in(w) == {"h100": 1, "a100": 0}
    change(w, job, pools=(A100, H100))
    assert waiting_in(w) == {"h100": 0, "a100": 1}
    w.stop(job)
    assert waiting_in(w) == {"h100": 0, "a100": 0}


def test_a_pool_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    w = fleet(h100=1, a100=1)
    w.submit(wanting(1, H100))
    job = w.submit(wanting(1, H100))
    answer = change(w, job, pools=(PoolChoice(pool="a10"),))
    assert refusal(answer) == 'pools[0]: there is no pool "a10"; did you mean "a100"?'
    assert w.cluster.jobs[job].changes == 0


def test_a_job_is_not_sent_where_no_node_could_ever_hold_it() -> None:
    w = fleet(h100=4, a100=2)
    w.submit(wanting(4, H100))
    job = w.submit(wanting(4, H100))
    answer = change(w, job, pools=(A100,))
    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.IMPOSSIBLE
    assert answer.message.startswith("no node could ever run it: ")
    assert isinstance(change(w, job, pools=(A100, H100)), Accepted)


def test_a_job_that_could_never_run_anyway_is_changed_to_another_that_never_could() -> None:
    w = fleet(h100=4, a100=2)
    job = w.submit(wanting(8, H100), queue_anyway=True)
    assert isinstance(change(w, job, pools=(A100,)), Accepted)


def test_neither_another_pool_nor_another_limit_lets_a_job_run_longer_than_its_pool_lets_it() -> None:
    w = fleet(h100=1, a100=1)
    w.turn(PoolSet(pool=Pool(name="a100", longest_run=HOUR)))
    w.submit(wanting(1, H100))
    w.submit(wanting(1, A100))
    long = w.submit(wanting(1, H100, timeouts=Timeouts(run=2 * HOUR)))
    short = w.submit(wanting(1, A100, timeouts=Timeouts(run=HOUR)))
    told = "it may run for 2h (timeouts.run), and in pool a100 nothing runs longer than 1h"
    assert refusal(change(w, long, pools=(A100,))) == told
    assert refusal(change(w, short, run=2 * HOUR)) == told
    assert isinstance(change(w, long, pools=(A100,), run=HOUR), Accepted)
    assert isinstance(change(w, short, run=WITHOUT_LIMIT), Accepted)


def test_another_class_is_another_place_in_the_queue_of_the_project() -> None:
    w = fleet(h100=1)
    w.submit(wanting(1))
    first, second = (w.submit(wanting(1)) for _ in range(2))
    change(w, first, job_class=JobClass.SPARE)
    assert [w.cluster.queue.position(job) for job in (first, second)] == [2, 1]
    assert w.cluster.jobs[first].job_class is JobClass.SPARE


def test_a_guaranteed_job_beyond_the_quota_is_refused_with_the_numbers() -> None:
    w = world(("n1", 4), a=2)
    w.submit(of("b", 4))
    job = w.submit(of("a", 3))
    answer = change(w, job, job_class=JobClass.GUARANTEED)
    assert isinstance(answer, Refused)
    assert answer.message.startswith("its project may not have so much: ")
    assert w.cluster.jobs[job].job_class is JobClass.PREEMPTIBLE


def test_a_job_that_names_no_class_gets_the_one_that_its_project_has_in_its_new_pool() -> None:
    w = fleet(h100=1, a100=1)
    none = QuotaTerms(quota=AmountBounds(gpus=0))
    w.change_units(QuotaUnit(name="default", kind=UnitKind.PROJECT, terms=UnitTerms(pools={"h100": none})))
    w.submit(wanting(1, A100))
    job = w.submit(wanting(1, A100, project="default"))
    before = w.cluster.jobs[job].job_class
    change(w, job, pools=(H100,))
    assert before is JobClass.GUARANTEED
    assert w.cluster.jobs[job].job_class is JobClass.PREEMPTIBLE


@pytest.mark.parametrize(
    "what", [{"pools": (PoolChoice(pool="default"),)}, {"job_class": JobClass.SPARE}], ids=["pool", "class"]
)
def test_seats_that_were_claimed_are_given_up(what: dict[str, object]) -> None:
    w = world(("n1", 8))
    running(w, *[of("a")] * 4)
    b = w.submit(of("b"))
    seats = w.attempt(b).claim
    assert seats is not None
    change(w, b, **what)
    claim = w.attempt(b).claim
    assert claim is None or claim.made_at == w.now
    assert w.phase(b) is JobPhase.QUEUED


def test_a_job_that_has_nodes_goes_nowhere_else_and_keeps_its_class() -> None:
    w = fleet(h100=1, a100=1)
    job = w.running(wanting(1, H100))
    for what in ({"pools": (A100,)}, {"job_class": JobClass.SPARE}):
        assert refusal(change(w, job, **what)) == (
            f"job {job} has its nodes already (running); only its priority can be changed now"
        )


def test_a_changed_job_is_the_same_after_a_restart() -> None:
    w = fleet(h100=1, a100=1)
    w.submit(wanting(1, H100))
    w.submit(wanting(1, A100))
    job = w.submit(wanting(1, H100))
    change(w, job, pools=(A100,), job_class=JobClass.SPARE)
    changed = w.cluster.jobs[job]
    w.restart()
    assert w.cluster.jobs[job] == changed
    assert waiting_in(w) == {"h100": 0, "a100": 1}


def test_the_story_tells_both_pools_and_both_classes() -> None:
    before = wanting(1, H100, PoolChoice(pool="a100", after=HOUR))
    after = JobChange(pools=(), job_class=JobClass.SPARE).applied(before)
    assert list(differences(before, after)) == ["class none → spare", "pools h100, a100 after 1h → any"]
