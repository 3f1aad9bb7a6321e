"""MIG devices: a kind of their own, given whole, that counts its compute slices."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.core.answers import QuotasSet, RefusalCause, Refused
from coordinator.core.placement.placement import NoFit, Placement, place
from coordinator.views.explain import explain
from muster.domain.fleet.quota import AmountBounds, QuotaTerms, UnitKind, UnitTerms, amounts_of
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, available, capacity, gpu, inventory, mig_devices, quota_unit, role, spec

DIVIDED = mig_devices("a", "1g.10gb", "1g.10gb", "3g.40gb")


def of(profile: str, gpus: int = 1, count: int = 1, **fields: Any) -> JobSpec:
    return spec(roles=(role(count, gpus, mig=profile),), **fields)


@pytest.fixture
def world() -> World:
    """A node with one GPU that is divided."""
    w = World()
    w.connect("a", inventory("a", gpus=DIVIDED))
    return w


def given(w: World, job: JobId) -> list[tuple[str, ...]]:
    return [each.gpus for each in w.cluster.gangs.members(AttemptId(job, w.cluster.jobs[job].attempt))]


def capacity_of(w: World) -> int:
    return w.cluster.unit_load.units.root("default").share[0]


def refusal(w: World, wanted: JobSpec) -> str:
    answer = w.try_submit(wanted)
    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.IMPOSSIBLE
    return answer.message


def test_a_job_that_asks_for_a_gpu_never_gets_a_mig_device() -> None:
    assert isinstance(place(spec(1, 1), available(capacity("a", gpus=DIVIDED))), NoFit)

    mixed = capacity("a", gpus=(*mig_devices("a", "7g.80gb"), gpu("a", 1)))
    fit = place(spec(1, 1), available(mixed))
    assert isinstance(fit, Placement)
    assert [seat.gpus for seat in fit.seats] == [("GPU-a-1",)]
    assert isinstance(place(spec(1, 2), available(mixed)), NoFit)


def test_a_job_that_asks_for_a_profile_gets_the_first_such_device_and_counts_its_slices(world: World) -> None:
    """Scenario D2: a node whose GPU is divided."""
    w = world
    before = w.try_submit(spec(1, 1))
    job = w.submit(of("1g.10gb"))

    assert isinstance(before, Refused)
    assert given(w, job) == [("MIG-a-0-0",)]
    assert w.cluster.unit_load.units.path("default", "default")[0].held[0] == 143


def test_a_gang_gets_a_device_for_each_execution_and_several_where_it_asks_for_several(world: World) -> None:
    one_each = world.submit(of("1g.10gb", count=2))
    assert given(world, one_each) == [("MIG-a-0-0",), ("MIG-a-0-1",)]
    world.delete(one_each, force=True)

    both = place(of("1g.10gb", 2), available(capacity("a", gpus=DIVIDED)))
    assert isinstance(both, Placement)
    assert both.seats[0].gpus == ("MIG-a-0-0", "MIG-a-0-1")


def test_a_job_may_ask_for_the_model_of_the_gpu_as_well() -> None:
    wanted = replace(of("1g.10gb"), roles=(role(1, 1, mig="1g.10gb", gpu_model="A100"),))

    assert isinstance(place(wanted, available(capacity("a", gpus=DIVIDED))), NoFit)


def test_a_device_that_is_not_well_is_given_to_nobody(world: World) -> None:
    world.change_inventory("a", gpus=(replace(DIVIDED[0], problems=("Xid 94",)), *DIVIDED[1:]))

    assert given(world, world.submit(of("1g.10gb"))) == [("MIG-a-0-1",)]


def test_a_whole_gpu_stands_in_for_no_mig_device(world: World) -> None:
    world.change_inventory("a", gpus=(*DIVIDED, gpu("a", 1)))
    jobs = [world.submit(of("3g.40gb")), world.submit(of("3g.40gb"))]

    assert [world.phase(job) for job in jobs] == [JobPhase.PREPARING, JobPhase.QUEUED]
    assert explain(world.cluster, jobs[1], world.now).refusals[0].reason == "needs 1 MIG device 3g.40gb, 0 are free"


def test_a_profile_that_no_node_has_is_refused_with_the_nearest_one(world: World) -> None:
    assert refusal(world, of("1g.12gb")).endswith("; no node has MIG devices 1g.12gb; did you mean 1g.10gb?")
    assert refusal(world, of("7g.999gb")).endswith("; no node has MIG devices 7g.999gb; there are 1g.10gb, 3g.40gb")

    waiting = world.submit(of("1g.12gb"), queue_anyway=True)
    assert explain(world.cluster, waiting, world.now).summary.endswith("; did you mean 1g.10gb?")


def test_where_no_gpu_is_divided_a_job_that_asks_for_a_profile_is_told_so() -> None:
    assert "; no node has MIG devices; " in refusal(World(("a", 8)), of("1g.10gb"))


def test_a_limit_counts_slices_and_not_whole_gpus(world: World) -> None:
    limit = UnitTerms(everywhere=QuotaTerms(limit=AmountBounds(gpus=300)))
    answer = world.change_units(replace(quota_unit("default", UnitKind.PROJECT), terms=limit))
    assert isinstance(answer, QuotasSet)
    jobs = [world.submit(of("1g.10gb", job_class=JobClass.PREEMPTIBLE)) for _ in range(2)]

    assert [world.phase(job) for job in jobs] == [JobPhase.PREPARING, JobPhase.PREPARING]
    assert "may not have so much" in refusal(world, of("3g.40gb"))


def test_a_pool_has_what_its_devices_count() -> None:
    w = World()
    w.connect("a", inventory("a", gpus=(*DIVIDED, gpu("a", 1))))
    total = 143 + 143 + 429 + 1000

    assert capacity_of(w) == total
    assert amounts_of(of("1g.10gb", 2), 0).gpus == 286
    w.change_inventory("a", gpus=(*DIVIDED[:2], replace(DIVIDED[2], problems=("Xid 94",)), gpu("a", 1)))
    assert capacity_of(w) == total - 429
