"""Quotas in the whole core: who is placed, who is refused, and what changes when terms do."""

from typing import Any

import pytest

from coordinator.core.answers import Accepted, QuotasSet, RefusalCause, Refused
from coordinator.core.events import CordonRequested, JobsSubmitted, NodeLabelled, ProjectAdded, QuotasChanged
from coordinator.core.requests.quotas import unit_of
from coordinator.core.scheduling.bars import Bars
from coordinator.core.sharing.patience import BAR_PATIENCE
from coordinator.core.sharing.precedence import BarKind
from muster.domain.fleet.quota import AmountBounds, QuotaTerms, QuotaUnit, UnitChange, UnitKind, UnitTerms
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.interactive import Interactive
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.pool_choice import PoolChoice
from tests.builders import World, inventory, pass_time, quota_unit, spec

GUARANTEED, PREEMPTIBLE, SPARE = JobClass
PATIENCE_SECONDS = int(BAR_PATIENCE.total_seconds())


def world(*nodes: tuple[str, int]) -> World:
    return World(*nodes, projects=("default", "a", "b", "c"))


def of(project: str, gpus: int = 1, count: int = 1, **fields: Any) -> JobSpec:
    return spec(count, gpus=gpus, project=project, **{"job_class": PREEMPTIBLE, **fields})


def full(w: World, gpus: int) -> JobId:
    """A job that has all GPUs until it ends, so that what comes then waits."""
    job = w.submit(of("default", gpus, job_class=None))
    w.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    return job


def end(w: World, job: JobId) -> None:
    for rank in range(w.cluster.jobs[job].spec.size):
        w.tell(job, rank, Stage.EXITED, exit=Exit(code=0), log_complete=True)


def placed(w: World, *jobs: JobId) -> list[bool]:
    return [w.phase(job) is not JobPhase.QUEUED for job in jobs]


def bar(w: World, job: JobId) -> BarKind | None:
    found = Bars(w.cluster, w.now).of(w.cluster.jobs[job])
    return None if found is None else found.kind


def test_projects_take_turns_within_their_quotas() -> None:
    w = world(("n1", 4))
    w.promise("a", quota=2)
    w.promise("b", quota=2)
    w.promise("default", quota=0)
    before = full(w, 4)
    a = [w.submit(of("a")) for _ in range(4)]
    b = [w.submit(of("b")) for _ in range(2)]

    end(w, before)

    assert placed(w, *a, *b) == [True, True, False, False, True, True]


def test_the_project_that_borrows_waits_for_the_one_that_is_promised() -> None:
    w = world(("n1", 2))
    w.promise("a", quota=0)
    w.promise("b", quota=2)
    before = full(w, 2)
    a, b = w.submit(of("a", 2)), w.submit(of("b", 2))

    end(w, before)

    assert placed(w, a, b) == [False, True]


def test_a_limit_keeps_jobs_waiting_while_others_pass() -> None:
    w = world(("n1", 8))
    w.promise("a", quota=2, limit=3)
    a = [w.submit(of("a")) for _ in range(5)]
    b = w.submit(of("b"))

    assert placed(w, *a, b) == [True, True, True, False, False, True]
    assert bar(w, a[3]) is BarKind.LIMIT

    w.tell_all(a[0], Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
    end(w, a[0])

    assert placed(w, a[3], a[4]) == [True, False]


def test_guaranteed_jobs_wait_for_the_quota_while_preemptible_ones_of_their_project_pass() -> None:
    w = world(("n1", 8))
    w.promise("a", quota=2)
    first, second = w.submit(of("a", 2, job_class=GUARANTEED)), w.submit(of("a", job_class=GUARANTEED))
    third = w.submit(of("a", 3))

    assert placed(w, first, second, third) == [True, False, True]
    assert bar(w, second) is BarKind.QUOTA


def test_spare_jobs_come_last_and_nothing_is_kept_for_them() -> None:
    w = world(("n1", 4))
    w.promise("a", quota=2)
    w.promise("b", quota=2)
    w.promise("default", quota=0)
    before = full(w, 4)
    spare = w.submit(of("a", 4, job_class=SPARE))
    others = [w.submit(of(project)) for project in "ab"]

    end(w, before)

    assert placed(w, spare, *others) == [False, True, True]
    assert w.cluster.load.reservation is None


def test_at_most_so_many_jobs_run_of_a_project_and_of_a_user() -> None:
    """Scenario Q1: as many jobs run as may."""
    w = world(("n1", 8))
    w.promise("a", max_running=2)
    w.promise("b", max_running_per_user=1)
    a = [w.submit(of("a")) for _ in range(3)]
    b = [w.submit(of("b"), owner=owner) for owner in ("ann", "ann", "bob")]

    assert placed(w, *a) == [True, True, False]
    assert placed(w, *b) == [True, False, True]
    assert (bar(w, a[2]), bar(w, b[1])) == (BarKind.MAX_RUNNING, BarKind.MAX_RUNNING_PER_USER)


def test_a_large_job_is_passed_for_a_while_and_then_waits_no_longer_for_smaller_ones() -> None:
    """Scenarios Q2 and Q3: a job that its limit bars is passed by a smaller one, and ten minutes later no more."""
    w = world(("n1", 16))
    w.promise("a", quota=8, limit=8)
    holding = w.running(of("a", 6))
    large = w.submit(of("a", 8))
    passes = w.running(of("a"))
    pass_time(w, PATIENCE_SECONDS)
    waits = w.submit(of("a"))

    assert placed(w, large, passes, waits) == [False, True, False]
    assert bar(w, waits) is BarKind.TURN

    end(w, passes)
    end(w, holding)

    assert placed(w, large, waits) == [True, False]
    assert bar(w, waits) is BarKind.LIMIT


def test_a_department_bounds_its_projects_together() -> None:
    w = world(("n1", 8))
    w.change_units(quota_unit("research", UnitKind.DEPARTMENT, quota=4, limit=4))
    w.promise("a", quota=3, department="research")
    w.promise("b", quota=3, department="research")
    jobs = [w.submit(of(project, 2)) for project in ("a", "b", "a", "b")]

    assert placed(w, *jobs) == [True, True, False, False]
    assert bar(w, jobs[2]) is BarKind.LIMIT


def test_without_terms_priority_and_first_come_decide_whatever_the_project() -> None:
    w = world(("n1", 2))
    before = full(w, 2)
    jobs = [w.submit(of("a", job_class=None)), w.submit(of("b", priority=1, job_class=None)), w.submit(of("a"))]

    end(w, before)

    assert [w.cluster.jobs[job].job_class for job in jobs] == [GUARANTEED, GUARANTEED, PREEMPTIBLE]
    assert placed(w, *jobs) == [True, True, False]


def test_a_job_that_names_no_class_has_that_of_its_project() -> None:
    w = world(("n1", 8))
    w.change_units(quota_unit("research", UnitKind.DEPARTMENT, job_class=SPARE))
    w.promise("a", quota=2)
    w.promise("b", quota=2, department="research")
    w.promise("c", quota=2, job_class=GUARANTEED)

    classes = [w.cluster.jobs[w.submit(of(name, job_class=None))].job_class for name in ("a", "b", "c", "default")]

    assert classes == [PREEMPTIBLE, SPARE, GUARANTEED, GUARANTEED]


@pytest.mark.parametrize(("gpus", "expected"), [(2, GUARANTEED), (3, PREEMPTIBLE)])
def test_a_job_in_which_people_work_is_guaranteed_if_it_fits_into_the_quota(gpus: int, expected: JobClass) -> None:
    w = world(("n1", 8))
    w.promise("a", quota=2)

    job = w.submit(of("a", gpus, job_class=None, interactive=Interactive()))

    assert w.cluster.jobs[job].job_class is expected


def test_queued_jobs_that_name_no_class_follow_their_project() -> None:
    w = world(("n1", 2))
    before = full(w, 2)
    silent, says = w.submit(of("a", job_class=None)), w.submit(of("a", job_class=GUARANTEED))
    w.promise("b", quota=2)

    assert [w.cluster.jobs[job].job_class for job in (silent, says)] == [PREEMPTIBLE, GUARANTEED]
    assert bar(w, says) is BarKind.QUOTA
    end(w, before)
    assert placed(w, silent, says) == [True, False]


def test_more_than_the_limit_and_guaranteed_jobs_beyond_the_quota_are_refused_with_the_numbers() -> None:
    w = world(("n1", 8))
    w.promise("a", quota=2, limit=3)

    over, beyond = w.try_submit(of("a", 4)), w.try_submit(of("a", 3, job_class=GUARANTEED))

    assert isinstance(over, Refused)
    assert over.cause is RefusalCause.IMPOSSIBLE
    assert "it needs 4 GPUs in pool default, and a never has more than its limit of 3 GPUs" in over.message
    assert isinstance(beyond, Refused)
    assert "guaranteed jobs of a never have more than its quota of 2 GPUs; with class: preemptible" in beyond.message
    assert isinstance(w.try_submit(of("a", 4), queue_anyway=True), Accepted)


def test_a_project_has_at_most_so_many_queued_jobs_also_in_one_call() -> None:
    w = world(("n1", 1))
    w.promise("a", max_queued=2)
    full(w, 1)
    w.submit(of("a"))

    together = JobsSubmitted(jobs=(w.submission(of("a")), w.submission(of("a"))))
    w.turn(together)
    assert len(w.cluster.queue) == 1
    w.submit(of("a"))

    refused = w.try_submit(of("a"))
    assert isinstance(refused, Refused)
    assert refused.cause is RefusalCause.EXHAUSTED
    assert "2 jobs of a are queued, as many as may be (max_queued: 2)" in refused.message


def test_terms_are_there_after_a_restart() -> None:
    w = world(("n1", 8))
    w.change_units(quota_unit("research", UnitKind.DEPARTMENT, quota=4))
    w.promise("a", quota=2, limit=3, department="research")
    jobs = [w.submit(of("a")) for _ in range(4)]

    w.restart()
    w.connect("n1")

    assert unit_of(w.cluster, "a") == quota_unit("a", UnitKind.PROJECT, "research", quota=2, limit=3)
    assert placed(w, *jobs) == [True, True, True, False]
    assert bar(w, jobs[3]) is BarKind.LIMIT


def change(before: QuotaUnit | None, after: QuotaUnit | None) -> QuotasChanged:
    return QuotasChanged(changes=(UnitChange(before=before, after=after),))


def test_nothing_is_changed_that_has_changed_since_somebody_looked() -> None:
    w = world()
    seen = unit_of(w.cluster, "a")
    w.promise("a", quota=2)

    [refused] = w.turn(change(seen, quota_unit("a", UnitKind.PROJECT, quota=4)))

    assert isinstance(refused, Refused)
    assert "have changed since" in refused.message
    assert unit_of(w.cluster, "a") == quota_unit("a", UnitKind.PROJECT, quota=2)


def test_all_of_a_change_is_done_or_nothing() -> None:
    w = world()
    good = UnitChange(before=unit_of(w.cluster, "a"), after=quota_unit("a", UnitKind.PROJECT, quota=1))
    bad = UnitChange(before=None, after=quota_unit("b", UnitKind.PROJECT, quota=1))

    [refused] = w.turn(QuotasChanged(changes=(good, bad)))

    assert isinstance(refused, Refused)
    assert unit_of(w.cluster, "a") == quota_unit("a", UnitKind.PROJECT)


def test_a_department_stays_while_it_has_a_project() -> None:
    w = world()
    department = quota_unit("research", UnitKind.DEPARTMENT)
    w.change_units(department)
    w.promise("a", department="research")

    [refused] = w.turn(change(department, None))
    assert isinstance(refused, Refused)
    assert "still has project a" in refused.message
    w.promise("a")
    [kept] = w.turn(change(department, None))

    assert isinstance(kept, QuotasSet)
    assert unit_of(w.cluster, "research") is None


def test_a_department_and_a_project_never_have_one_name() -> None:
    w = world()
    w.change_units(quota_unit("research", UnitKind.DEPARTMENT))

    [as_department] = w.turn(change(None, quota_unit("a", UnitKind.DEPARTMENT)))
    [as_project] = w.turn(ProjectAdded(name="research"))

    assert isinstance(as_department, Refused)
    assert isinstance(as_project, Refused)


def test_promises_that_cannot_be_kept_are_told() -> None:
    w = world(("n1", 4))

    answer = w.change_units(quota_unit("a", UnitKind.PROJECT, quota=6))

    assert isinstance(answer, QuotasSet)
    unlimited, too_much = answer.warnings
    assert unlimited.startswith("project default is promised all of pool default, so its jobs go before others")
    assert too_much == "quotas promise 6 GPUs of pool default, and the pool has 4 GPUs"


def test_a_cordoned_node_counts_with_what_runs_there_and_a_lost_one_does_not() -> None:

    w = world(("n1", 4), ("n2", 4))
    w.promise("a", quota=2)
    job = w.running(of("a", 3))
    node = w.seat(job)
    w.turn(CordonRequested(node=NodeId(node)))
    w.cluster.unit_load.settle()

    assert w.cluster.unit_load.units.root("default").share[0] == 7000
    end(w, job)
    w.cluster.unit_load.settle()
    assert w.cluster.unit_load.units.root("default").share[0] == 4000


def two_pools() -> World:
    w = World(projects=("default", "a", "b"))
    for node, pool in (("n1", "small"), ("n2", "large")):
        w.connect(node, inventory(node, 4, labels={"pool": pool}))
    return w


def in_pool(name: str, pool: str, **bounds: int) -> QuotaUnit:
    """A project with bounds in one pool, in whole GPUs."""
    amounts = {key: AmountBounds(gpus=gpus * 1000) for key, gpus in bounds.items()}
    terms = QuotaTerms(quota=amounts.get("quota", AmountBounds()), limit=amounts.get("limit", AmountBounds()))
    return QuotaUnit(name=name, kind=UnitKind.PROJECT, terms=UnitTerms(pools={pool: terms}))


SMALL, LARGE = (PoolChoice(pool="small"),), (PoolChoice(pool="large"),)


def test_a_job_passes_the_pool_whose_limit_is_reached() -> None:
    w = two_pools()
    w.change_units(in_pool("a", "small", limit=2))
    jobs = [w.submit(of("a", 2, pools=(*SMALL, *LARGE))) for _ in range(3)]

    assert [w.seat(job) for job in jobs] == ["n1", "n2", "n2"]


def test_a_job_that_names_no_pool_goes_where_its_project_may_have_something() -> None:
    w = two_pools()
    w.change_units(in_pool("a", "large", limit=1), in_pool("b", "small", limit=1))

    assert (w.seat(w.submit(of("a", 2))), w.seat(w.submit(of("b", 2)))) == ("n1", "n2")


def test_a_quota_in_one_pool_says_nothing_of_the_others() -> None:
    w = two_pools()
    w.change_units(in_pool("a", "small", quota=2))
    wanted = ((2, SMALL), (2, SMALL), (4, LARGE))

    jobs = [w.submit(of("a", gpus, job_class=GUARANTEED, pools=pools)) for gpus, pools in wanted]

    assert placed(w, *jobs) == [True, False, True]
    assert w.cluster.unit_load.units.counted("large") == ()


def test_others_of_the_same_kind_are_tried_where_one_job_may_not_go() -> None:
    w = two_pools()
    w.change_units(in_pool("a", "large", limit=0))
    w.running(of("default", 4, job_class=None, pools=SMALL))
    waits, passes = w.submit(of("a", 4)), w.submit(of("b", 4))

    assert (w.seats(waits), w.seats(passes)) == ([None], ["n2"])


def test_what_runs_counts_in_the_pool_where_it_was_placed_whatever_its_node_is_called_later() -> None:
    w = two_pools()
    w.change_units(in_pool("a", "small", quota=2, limit=2))
    job = w.running(of("a", 2, pools=SMALL))
    units = w.cluster.unit_load.units

    w.turn(NodeLabelled(node=NodeId("n1"), labels={"pool": "large"}))

    assert units.root("small").held[0] == 2000
    end(w, job)
    w.cluster.unit_load.settle()
    assert (units.root("small").held[0], units.root("large").share[0]) == (0, 8000)
