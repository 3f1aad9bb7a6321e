"""The order of jobs: quotas first, then shares, then what is borrowed; and whom terms keep waiting."""

from random import Random

from coordinator.core.sharing.precedence import Bar, BarKind, Tier
from muster.domain.fleet.quota import QuotaTerms, QuotaUnit, UnitKind, UnitTerms
from muster.domain.jobs.job_class import JobClass
from tests.unit.coordinator.core.sharing.one_pool import POOL, OnePool, terms

GUARANTEED, SPARE = JobClass.GUARANTEED, JobClass.SPARE


def submit(pool: OnePool, *names: str, gpus: int = 1) -> None:
    for name in names:
        pool.submit(name, gpus=gpus)


def test_projects_take_turns_within_their_quotas() -> None:
    pool = OnePool(4)
    pool.project("A", terms(quota=2))
    pool.project("B", terms(quota=2))
    submit(pool, "a1", "a2", "a3", "a4", "b1", "b2")

    assert pool.run() == ["a1", "b1", "a2", "b2"]
    assert pool.tier("a3") is Tier.BORROWED


def test_what_is_left_over_goes_by_weight() -> None:
    pool = OnePool(10)
    pool.project("A", terms(quota=2, weight=1))
    pool.project("B", terms(quota=2, weight=3))
    submit(pool, *(f"a{number}" for number in range(10)), *(f"b{number}" for number in range(10)))

    started = pool.run()

    assert (pool.share("A"), pool.share("B")) == (3, 7)
    assert sum(name.startswith("a") for name in started) == 3
    assert len(started) == 10


def test_nobody_holds_more_than_its_limit() -> None:
    pool = OnePool(8)
    pool.project("A", terms(quota=2, limit=3))
    submit(pool, "a1", "a2", "a3", "a4", "a5")

    assert pool.run() == ["a1", "a2", "a3"]
    assert pool.bar("a4") == Bar(BarKind.LIMIT, "A", 0, 3000, 3000)


def test_guaranteed_jobs_stay_within_the_quota_and_others_pass_them() -> None:
    pool = OnePool(8)
    pool.project("A", terms(quota=2))
    pool.submit("a1", gpus=2, job_class=GUARANTEED)
    pool.submit("a2", job_class=GUARANTEED)
    pool.submit("a3", gpus=3)

    assert pool.run() == ["a1", "a3"]
    assert pool.bar("a2") == Bar(BarKind.QUOTA, "A", 0, 2000, 2000)


def test_a_higher_rank_gets_what_is_left_over_first() -> None:
    pool = OnePool(6)
    pool.project("A", terms(quota=0, weight=1, rank=1))
    pool.project("B", terms(quota=0, weight=9))
    submit(pool, "a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4", "b5", "b6")
    pool.run()

    assert sorted(pool.running) == ["a1", "a2", "a3", "a4", "b1", "b2"]


def test_departments_are_compared_before_their_projects() -> None:
    pool = OnePool(4)
    pool.department("D", terms(quota=2))
    pool.department("E", terms(quota=2))
    pool.project("A", terms(quota=3), department="D")
    pool.project("B", terms(quota=1), department="D")
    pool.project("C", terms(quota=2), department="E")
    submit(pool, "a1", "a2", "a3", "b1", "c1", "c2")

    assert pool.run() == ["a1", "c1", "b1", "c2"]
    assert pool.tier("a2") is Tier.QUOTA, "the project has a quota left; its department has not"


def test_within_a_project_it_is_class_then_priority_and_spare_jobs_come_last_of_all() -> None:
    pool = OnePool(4)
    pool.project("A", terms(quota=2))
    pool.project("B", terms(quota=2))
    pool.submit("a1", job_class=SPARE)
    pool.submit("a2")
    pool.submit("a3", priority=50)
    pool.submit("a4", job_class=GUARANTEED)
    pool.submit("b1")

    started = pool.run()

    assert [name for name in started if name != "b1"] == ["a4", "a3", "a2"]
    assert "b1" in started
    assert pool.tier("a1") is Tier.SPARE


def test_priority_of_one_project_means_nothing_to_another() -> None:
    pool = OnePool(2)
    pool.project("A", terms(quota=1))
    pool.project("B", terms(quota=1))
    pool.submit("a1", priority=1000)
    pool.submit("a2", priority=1000)
    pool.submit("b1", priority=-1000)

    assert pool.run() == ["a1", "b1"]


def test_at_most_so_many_jobs_of_a_project_run() -> None:
    pool = OnePool(4)
    pool.project("A", QuotaTerms(max_running=2))
    submit(pool, "a1", "a2", "a3")

    assert pool.run() == ["a1", "a2"]
    assert pool.bar("a3") == Bar(BarKind.MAX_RUNNING, "A", 0, 2, 2)
    pool.end("a1")
    assert pool.run() == ["a3"]


def test_at_most_so_many_jobs_of_a_user_run_and_others_pass() -> None:
    pool = OnePool(4)
    pool.project("A", QuotaTerms(max_running_per_user=1))
    pool.submit("a1", owner="ann")
    pool.submit("a2", owner="ann")
    pool.submit("a3", owner="bob")

    assert pool.run() == ["a1", "a3"]
    assert pool.bar("a2") == Bar(BarKind.MAX_RUNNING_PER_USER, "A", 0, 1, 1)


def test_a_smaller_job_passes_one_that_the_limit_keeps_waiting() -> None:
    pool = OnePool(16)
    pool.project("A", terms(limit=8))
    submit(pool, "a0", gpus=6)
    pool.run()
    submit(pool, "a1", gpus=8)
    submit(pool, "a2")

    assert pool.run() == ["a2"]


def test_without_terms_it_is_class_priority_and_first_come_whatever_the_project() -> None:
    pool = OnePool(3)
    pool.project("A")
    pool.project("B")
    pool.submit("b1")
    pool.submit("a1", priority=5)
    pool.submit("a2")
    pool.submit("b2")

    assert pool.run() == ["a1", "b1", "a2"]


def test_a_department_of_which_nothing_is_said_is_promised_what_its_projects_are() -> None:
    pool = OnePool(8)
    pool.department("D", QuotaTerms())
    pool.project("A", terms(quota=3), department="D")
    pool.project("B", terms(quota=2), department="D")
    pool.project("C", terms(quota=3))
    submit(pool, *(f"c{number}" for number in range(6)), *(f"a{number}" for number in range(6)))

    assert pool.units.entitlement("D", POOL).quota.gpus == 5000
    assert pool.run().count("c0") == 1
    assert len([name for name in pool.running if name.startswith("a")]) == 5
    assert (pool.share("A"), pool.share("C")) == (5, 3)


def test_a_project_that_moves_takes_what_it_holds_and_wants_along() -> None:
    pool = OnePool(8)
    pool.department("D", terms(quota=4))
    pool.department("E", terms(quota=4))
    pool.project("A", terms(quota=2), department="D")
    submit(pool, "a1", "a2", "a3", gpus=2)
    pool.run()
    submit(pool, "a4", gpus=4)

    pool.project("A", terms(quota=2), department="E")

    departments = {name: pool.units.in_pool(POOL).get(name) for name in ("D", "E")}
    assert departments["D"] is not None
    assert departments["D"].idle
    assert departments["E"] is not None
    assert (departments["E"].held[0], departments["E"].waiting[0]) == (6000, 4000)
    assert pool.units.get("E").running_of == {"ann": 3}
    assert (pool.units.get("D").running, pool.units.get("D").queued) == (0, 0)
    assert pool.units.root(POOL).held[0] == 6000


def test_counts_are_those_of_a_count_from_the_start_whatever_happens() -> None:
    chance = Random(5)
    for _ in range(200):
        pool = OnePool(chance.randint(1, 12))
        for name in "DE":
            pool.department(name, terms(quota=chance.choice((None, 2, 6)), limit=chance.choice((None, None, 4))))
        for name in "ABC":
            _put(pool, name, chance)
        for number in range(30):
            what = chance.random()
            if what < 0.5:
                classes = list(JobClass)
                pool.submit(
                    f"{chance.choice('abc')}{number}", gpus=chance.randint(1, 4), job_class=chance.choice(classes)
                )
            elif what < 0.7 and pool.running:
                pool.end(chance.choice(sorted(pool.running)))
            elif what < 0.8:
                _put(pool, chance.choice("ABC"), chance)
            pool.run()
            _recount(pool)


def _put(pool: OnePool, name: str, chance: Random) -> None:
    quota, limit, weight = chance.choice((None, 0, 2, 4)), chance.choice((None, None, 3)), chance.choice((None, 0, 3))
    pool.project(name, terms(quota, limit, weight, chance.choice((0, 0, 1))), chance.choice(("", "D", "E")))


def _recount(pool: OnePool) -> None:
    held: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for sums, jobs in ((held, pool.running.values()), (waiting, pool.waiting)):
        for job in jobs:
            for unit in pool.units.get(job.project).line():
                sums[unit.name] = sums.get(unit.name, 0) + job.size.gpus
    for unit in pool.units:
        standing = pool.units.in_pool(POOL).get(unit.name)
        found = (0, 0) if standing is None else (standing.held[0], standing.waiting[0])
        assert found == (held.get(unit.name, 0), waiting.get(unit.name, 0)), unit.name
        if standing is not None:
            bound = standing.entitlement.quota[0]
            assert standing.below or standing.share[0] <= pool.gpus * 1000
            assert bound >= 0


def test_a_unit_that_is_removed_leaves_nothing_behind() -> None:
    pool = OnePool(4)
    pool.project("A", terms(quota=2))
    submit(pool, "a1")
    pool.run()
    pool.end("a1")

    pool.units.remove("A")

    assert "A" not in pool.units
    assert pool.units.counted(POOL) == ()
    pool.units.put(QuotaUnit(name="A", kind=UnitKind.PROJECT, terms=UnitTerms()))
    assert pool.units.entitlement("A", POOL).quota.gpus == 0
