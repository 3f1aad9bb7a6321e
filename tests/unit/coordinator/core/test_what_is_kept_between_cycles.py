"""What a cycle keeps of projects for the next one is what would be worked out anew, whatever has happened since."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.scheduling.bars import Bars
from coordinator.core.scheduling.first_jobs import Firsts
from coordinator.core.sharing.leaf_order import RankedJob
from coordinator.core.sharing.patience import BAR_PATIENCE
from coordinator.core.sharing.standing import Entitlement
from coordinator.core.sharing.units import Units
from muster.domain.fleet.quota import QuotaUnit, UnitKind
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, pass_time, quota_unit, spec
from tests.unit.coordinator.core.random_courses import LEASE_SECONDS, NODES, end_all, start_all

DEPARTMENTS = ("", "east", "west")
PROJECTS = ("a", "b", "c", "d")


def any_unit(random: Random) -> QuotaUnit:
    """A department or a project with any terms."""
    bound = random.choice(({}, {"quota": random.randrange(6)}, {"limit": random.randrange(1, 6)}))
    count = random.choice(({}, {"max_running": 1}, {"max_running_per_user": 1}, {"weight": random.randrange(3)}))
    terms: dict[str, Any] = {"min_runtime": timedelta(), **bound, **count}
    if random.random() < 0.3:
        return quota_unit(random.choice(DEPARTMENTS[1:]), UnitKind.DEPARTMENT, **terms)
    return quota_unit(random.choice(PROJECTS), UnitKind.PROJECT, random.choice(DEPARTMENTS), **terms)


def any_job(random: Random) -> JobSpec:
    return spec(
        random.choice((1, 1, 2, 3)),
        gpus=random.choice((1, 1, 2)),
        project=random.choice(PROJECTS),
        job_class=random.choice(tuple(JobClass)),
        priority=random.choice((0, 0, 5)),
    )


def any_event(w: World, random: Random) -> None:
    """Jobs come, run and end, terms change, and time passes."""
    match random.randrange(8):
        case 0 | 1 | 2:
            w.submit(any_job(random), queue_anyway=True)
        case 3:
            w.change_units(any_unit(random))
        case 4:
            start_all(w)
        case 5:
            end_all(w)
        case 6:
            live = [job for job in w.cluster.jobs if w.phase(job) in {JobPhase.RUNNING, JobPhase.QUEUED}]
            if live:
                w.stop(random.choice(live))
        case _:
            seconds = random.choice((1, 60, int(BAR_PATIENCE.total_seconds())))
            pass_time(w, seconds)


def fleet() -> World:
    w = World(*NODES.items(), projects=("default", *PROJECTS))
    w.change_units(
        *(quota_unit(name, UnitKind.DEPARTMENT, quota=4) for name in DEPARTMENTS[1:]),
        *(quota_unit(name, UnitKind.PROJECT, DEPARTMENTS[1 + number % 2]) for number, name in enumerate(PROJECTS)),
    )
    pass_time(w, LEASE_SECONDS)
    return w


def firsts(w: World) -> Sequence[RankedJob]:
    """The first jobs of projects as a cycle that begins now would have them."""
    w.cluster.unit_load.settle()
    return list(Firsts(w.cluster, Bars(w.cluster, w.now), w.now))


def is_free(w: World, project: str) -> bool:
    """Whether a cycle takes a job of a project for one that nothing bars."""
    known = w.cluster.unit_load.order.of(project)
    return known is not None and known.free is not None


def shares(w: World) -> Mapping[str, Sequence[int]]:
    w.cluster.unit_load.settle()
    units = w.cluster.unit_load.units
    return {unit.name: list(units.in_pool(pool).path(unit)[-1].share) for pool in units.pools for unit in units}


def entitlements(w: World, units: Units) -> Mapping[str, Entitlement]:
    """What every unit may have."""
    pools = w.cluster.unit_load.units.pools
    return {unit.name: units.entitlement(unit.name, pool) for pool in pools for unit in w.cluster.unit_load.units}


def told_anew(w: World) -> Units:
    """Units that hear of all departments and projects as they are now."""
    units, records = Units(), w.cluster.records
    named = [*(each.unit for each in records.departments.values()), *(each.unit for each in records.projects.values())]
    for unit in named:
        units.put(unit)
    return units


def forget(w: World) -> None:
    """Have a cycle work out everything anew."""
    units = w.cluster.unit_load.units
    for leaf in w.cluster.queue.lines.leaves:
        w.cluster.unit_load.order.doubt(leaf)
    for pool in units.pools:
        units.root(pool).stir_all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_first_jobs_shares_and_entitlements_are_as_if_nothing_were_kept(seed: int) -> None:
    random, w = Random(seed), fleet()
    for _ in range(random.randint(5, 25)):
        any_event(w, random)
        kept = (shares(w), firsts(w))
        assert entitlements(w, w.cluster.unit_load.units) == entitlements(w, told_anew(w))
        forget(w)
        assert (shares(w), firsts(w)) == kept
        gone = frozenset(random.sample(PROJECTS, random.randrange(len(PROJECTS) + 1)))
        others = Firsts(w.cluster, Bars(w.cluster, w.now), w.now).without(gone)
        assert list(others) == [each for each in kept[1] if each.leaf not in gone]


def test_a_project_waits_for_another_one_of_its_department_from_the_end_of_patience_on() -> None:
    w = World(("n1", 8), projects=("default", "a", "b"))
    w.change_units(
        quota_unit("both", UnitKind.DEPARTMENT, limit=4),
        quota_unit("a", UnitKind.PROJECT, "both"),
        quota_unit("b", UnitKind.PROJECT, "both"),
    )
    w.running(spec(1, gpus=1, project="a"))
    w.running(spec(1, gpus=6))
    w.submit(spec(1, gpus=4, project="a"))
    w.submit(spec(1, gpus=2, project="b"))
    assert is_free(w, "b")
    assert not is_free(w, "a")
    w.now += BAR_PATIENCE
    firsts(w)
    assert not is_free(w, "b")
