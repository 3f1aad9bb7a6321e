"""Portions of GPUs: several executions on one GPU, as far as its thousandths and its memory go."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.core.answers import RefusalCause, Refused
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import NoFit, Placement, fits, place
from coordinator.views.explain import explain
from coordinator.views.nodes import node_view
from muster.domain.fleet.features import ALL_FEATURES, GPU_PORTIONS
from muster.domain.fleet.quota import AmountBounds, QuotaTerms, UnitKind, UnitTerms, amounts_of
from muster.domain.gangs.plan import Assignment, Stage
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.portion import GpuShare
from tests.builders import GIB, World, available, capacity, gpu, inventory, mig_devices, quota_unit, role, spec


def part(thousandths: int, gpus: int = 1, count: int = 1, **fields: Any) -> JobSpec:
    return spec(roles=(role(count, gpus, gpu_portion=thousandths, cpus=0.1),), **fields)


def memory(gib: int, gpus: int = 1, count: int = 1, **fields: Any) -> JobSpec:
    return spec(roles=(role(count, gpus, gpu_memory=gib * GIB, cpus=0.1),), **fields)


def whole(gpus: int = 1, **fields: Any) -> JobSpec:
    return spec(1, gpus, cpus=0.1, **fields)


def preemptible(wanted: JobSpec) -> JobSpec:
    return replace(wanted, job_class=JobClass.PREEMPTIBLE)


def room(count: int = 0, **fields: Any) -> Capacity:
    return capacity("a", count, features=ALL_FEATURES, **fields)


def given(w: World, job: JobId) -> list[tuple[str, ...]]:
    return [each.gpus for each in w.cluster.gangs.members(AttemptId(job, w.cluster.jobs[job].attempt))]


def waits(w: World, job: JobId) -> bool:
    return w.phase(job) is JobPhase.QUEUED


def seats(wanted: JobSpec, *capacities: Any) -> list[tuple[str, ...]]:
    fit = place(wanted, available(*capacities))
    assert isinstance(fit, Placement), fit
    assert fits(wanted, available(*capacities))
    return [seat.gpus for seat in fit.seats]


def assigned(w: World, job: JobId, node: str = "a") -> Assignment:
    return w.followers[NodeId(node)].assignments[w.rank(job, 0).id]


def refusal(w: World, wanted: JobSpec) -> str:
    answer = w.try_submit(wanted)
    assert isinstance(answer, Refused)
    assert answer.cause is RefusalCause.IMPOSSIBLE
    return answer.message


def test_x1_portions_share_the_fullest_gpu_and_what_the_head_needs_of_it_is_kept() -> None:
    w = World(("n1", 2))
    w.promise("default", quota=2)
    h1, h2, w1 = (w.submit(each) for each in map(preemptible, (part(500), part(250), whole())))

    assert [given(w, each) for each in (h1, h2, w1)] == [[("GPU-n1-0",)], [("GPU-n1-0",)], [("GPU-n1-1",)]]

    h3, h4 = w.submit(preemptible(part(500))), w.submit(preemptible(part(250)))
    assert waits(w, h3)
    assert waits(w, h4), "the last quarter is kept for the head"
    assert w.cluster.load.reservation is not None
    assert w.cluster.load.reservation.job == h3

    w.delete(h2, force=True)
    w.tell(h2, 0, Stage.STOPPED)
    assert given(w, h3) == [("GPU-n1-0",)]
    assert waits(w, h4)


def test_x4_either_bound_counts_and_a_whole_gpu_is_opened_where_no_shared_one_holds_it() -> None:
    w = World(("n1", 2))
    jobs = [w.submit(memory(gib)) for gib in (20, 40, 30)]

    assert [given(w, job) for job in jobs] == [[("GPU-n1-0",)], [("GPU-n1-0",)], [("GPU-n1-1",)]]
    assert [amounts_of(w.cluster.jobs[job].spec, 0).gpus for job in jobs] == [250, 500, 375]


def test_a_gpu_of_which_a_portion_is_given_is_never_given_whole() -> None:
    w = World(("n1", 1))
    small, large = w.submit(part(10)), w.submit(whole())

    assert waits(w, large)
    assert explain(w.cluster, large, w.now).refusals[0].reason == "needs 1 GPU, 0 are free"
    w.delete(small, force=True)
    w.tell(small, 0, Stage.STOPPED)
    assert given(w, large) == [("GPU-n1-0",)]
    assert waits(w, w.submit(part(10))), "nor the other way round"


def test_an_execution_with_portions_of_several_gpus_gets_each_of_another_one() -> None:
    w = World(("n1", 2))
    both = w.submit(part(500, 2))
    assert given(w, both) == [("GPU-n1-0", "GPU-n1-1")]
    assert given(w, w.submit(part(500, 2))) == [("GPU-n1-0", "GPU-n1-1")]
    assert waits(w, w.submit(part(10, 1)))
    assert w.cluster.unit_load.units.path("default", "default")[0].held[0] == 2000

    alone = World(("n1", 1))
    assert "no node could ever run it" in refusal(alone, part(500, 2))


def test_a_gang_shares_as_few_gpus_as_hold_it() -> None:
    assert seats(part(250, count=5), room(4)) == [*[("GPU-a-0",)] * 4, ("GPU-a-1",)]
    assert seats(part(400, count=3), room(4)) == [*[("GPU-a-0",)] * 2, ("GPU-a-1",)]
    assert isinstance(place(part(600, count=5), available(room(4))), NoFit)
    assert not fits(part(600, count=5), available(room(4)))


def test_of_all_nodes_the_one_with_the_fullest_gpu_that_holds_it_is_taken() -> None:
    w = World(("a", 2), ("b", 2), ("c", 2))
    filled = [
        w.submit(part(each, exclude_nodes=out)) for each, out in ((600, ()), (700, names("a")), (900, names("a b")))
    ]
    assert [w.seat(job) for job in filled] == ["a", "b", "c"]

    assert w.seat(w.submit(part(300))) == "b"
    assert w.seat(w.submit(part(300))) == "a"
    assert w.seat(w.submit(part(100))) == "a"
    assert w.seat(w.submit(part(100))) == "c"
    assert w.seat(w.submit(part(100))) == "a", "no GPU has room by now but whole ones"


def names(text: str) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, text.split()))


def test_a_mig_device_is_given_in_no_portions() -> None:
    w = World()
    w.connect("a", inventory("a", gpus=mig_devices("a", "3g.40gb", "3g.40gb")))

    assert "needs 0.5 of a GPU, 0 GPUs are free" in str(refusals_of(w, part(500)))


def test_a_model_is_asked_for_with_portions_too() -> None:
    mixed = room(gpus=(gpu("a", 0, "NVIDIA A100"), gpu("a", 1, "NVIDIA H100")))

    assert seats(replace(part(500), roles=(role(1, 1, gpu_portion=500, gpu_model="h100"),)), mixed) == [("GPU-a-1",)]


def test_memory_of_a_gpu_counts_its_part_of_the_smallest_that_has_so_much() -> None:
    w = World()
    w.connect("a", inventory("a", gpus=(gpu("a", 0), gpu("a", 1, "NVIDIA A10", memory=24 * GIB))))
    small, large = w.submit(memory(20)), w.submit(memory(40))

    assert [w.cluster.jobs[job].spec.roles[0].resources.gpu_counted for job in (small, large)] == [834, 500]
    assert given(w, small) == [("GPU-a-0",)]
    assert w.cluster.unit_load.units.path("default", "default")[0].held[0] == 1334
    w.restart()
    assert amounts_of(w.cluster.jobs[small].spec, 0).gpus == 834


def test_jobs_whose_memory_counts_otherwise_do_not_stand_in_each_others_way() -> None:
    w = World()
    w.connect("a", inventory("a", gpus=(gpu("a", 0), gpu("a", 1, "NVIDIA A10", memory=24 * GIB))))
    limit = UnitTerms(everywhere=QuotaTerms(limit=AmountBounds(gpus=900)))
    w.change_units(replace(quota_unit("default", UnitKind.PROJECT), terms=limit))
    first = w.submit(preemptible(part(200)))
    large = w.submit(preemptible(memory(20)))
    w.change_inventory("a", gpus=(gpu("a", 0),))
    small = w.submit(preemptible(memory(20)))

    assert [w.cluster.jobs[job].spec.roles[0].resources.gpu_counted for job in (large, small)] == [834, 250]
    assert [waits(w, job) for job in (first, large, small)] == [False, True, False]


def test_memory_that_no_gpu_has_is_refused_with_what_they_have() -> None:
    w = World(("a", 1))
    answer = w.try_submit(memory(100))

    assert isinstance(answer, Refused)
    assert answer.refusals[0].reason == "needs 100 GiB of a GPU, 80 GiB are free of the one that has most"
    waiting = w.submit(memory(100), queue_anyway=True)
    assert amounts_of(w.cluster.jobs[waiting].spec, 0).gpus == 1000


def test_why_says_how_much_of_a_gpu_is_free() -> None:
    w = World(("a", 1))
    w.submit(part(700))
    jobs = [w.submit(part(500)), w.submit(memory(30))]

    assert [explain(w.cluster, job, w.now).refusals[0].reason for job in jobs] == [
        "needs 0.5 of a GPU, 0.3 is free of the one that has most",
        "needs 30 GiB of a GPU, 24 GiB are free of the one that has most",
    ]


def test_a_limit_counts_thousandths() -> None:
    w = World(("a", 8))
    limit = UnitTerms(everywhere=QuotaTerms(limit=AmountBounds(gpus=700)))
    w.change_units(replace(quota_unit("default", UnitKind.PROJECT), terms=limit))
    jobs = [w.submit(preemptible(part(350))) for _ in range(3)]

    assert [waits(w, job) for job in jobs] == [False, False, True]
    assert "may not have so much" in refusal(w, preemptible(part(350, 8)))


def test_the_agent_is_told_the_share_of_an_execution_and_people_what_is_given_of_a_gpu() -> None:
    w = World(("a", 2))
    jobs = [w.submit(part(500)), w.submit(memory(20)), w.submit(whole())]

    assert [assigned(w, job).gpu_share for job in jobs] == [
        GpuShare(500, 40 * GIB),
        GpuShare(250, 20 * GIB),
        None,
    ]
    view = node_view(w.cluster, NodeId("a"))
    assert view.gpus_taken == ("GPU-a-1",)
    assert view.gpus_shared == {"GPU-a-0": GpuShare(750, 60 * GIB)}


def test_a_restart_knows_what_is_given() -> None:
    w = World(("a", 2))
    w.submit(part(500))
    w.submit(memory(20))
    w.restart()
    w.connect("a")

    assert given(w, w.submit(part(250))) == [("GPU-a-0",)]
    assert given(w, w.submit(part(250))) == [("GPU-a-1",)]


def test_a_broken_gpu_gets_no_more_portions() -> None:
    w = World(("a", 2))
    first = w.submit(part(100))
    w.change_inventory("a", gpus=(gpu("a", 0, problems=("Xid 79",)), gpu("a", 1)))

    assert given(w, first) == [("GPU-a-0",)]
    assert given(w, w.submit(part(100))) == [("GPU-a-1",)]


def test_an_agent_that_knows_no_portions_gets_none() -> None:
    w = World()
    w.connect("a", inventory("a", 1), features=ALL_FEATURES - {GPU_PORTIONS})

    assert "has an agent that does not know portions of GPUs; upgrade it" in str(refusals_of(w, part(500)))


def refusals_of(w: World, wanted: JobSpec) -> list[str]:
    answer = w.try_submit(wanted)
    assert isinstance(answer, Refused)
    return [each.reason for each in answer.refusals]


@pytest.mark.parametrize("gib", [10, 30])
def test_gpus_of_other_sizes_than_their_model_tells_are_looked_at_one_by_one(gib: int) -> None:
    sizes = tuple(gpu("a", index, memory=(40 + 40 * index) * GIB) for index in range(2))
    there = room(gpus=sizes, gpu_sizes=(("NVIDIA H100", 40), ("NVIDIA H100", 80)))

    assert len(seats(memory(gib, count=3), there)) == 3
    assert not fits(memory(gib, count=13), available(there))
