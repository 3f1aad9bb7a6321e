"""Where a gang goes, and why it does not fit."""

import pytest

from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import NoFit, Placement, place, refusals
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.ids import NodeId
from muster.domain.jobs.explanation import NodeRefusal
from muster.domain.jobs.job import JobSpec, Packing, RuntimeKind
from tests.builders import GIB, available, capacity, gpu, gpus, role, spec


def nodes(wanted: JobSpec, *capacities: Capacity) -> list[str]:
    """The nodes by rank."""
    fit = place(wanted, available(*capacities))
    assert isinstance(fit, Placement), fit
    return [seat.node for seat in fit.seats]


def chosen(wanted: JobSpec, *capacities: Capacity) -> list[tuple[str, ...]]:
    """The GPUs by rank."""
    fit = place(wanted, available(*capacities))
    assert isinstance(fit, Placement), fit
    return [seat.gpus for seat in fit.seats]


def no_fit(wanted: JobSpec, *capacities: Capacity) -> NoFit:
    fit = place(wanted, available(*capacities))
    assert isinstance(fit, NoFit), fit
    return fit


def reason(wanted: JobSpec, only: Capacity) -> str:
    assert isinstance(place(wanted, available(only)), NoFit)
    return refusals(wanted, available(only))[0].reason


def test_pack_fills_one_node_when_it_can() -> None:
    assert nodes(spec(4, gpus=2), capacity("a", 8), capacity("b", 8)) == ["a", "a", "a", "a"]


def test_pack_takes_the_tightest_node_that_holds_all_of_it() -> None:
    assert nodes(spec(1, gpus=2), capacity("a", 8), capacity("b", 2), capacity("c", 4)) == ["b"]


def test_pack_fills_the_largest_node_and_puts_the_rest_where_it_fits_tightest() -> None:
    assert nodes(spec(10, gpus=1), capacity("a", 8), capacity("b", 8), capacity("c", 2)) == ["a"] * 8 + ["c"] * 2


def test_spread_takes_as_many_nodes_as_there_are() -> None:
    assert nodes(spec(4, packing=Packing.SPREAD), capacity("a"), capacity("b"), capacity("c")) == ["a", "a", "b", "c"]


def test_spread_prefers_nodes_with_more_room() -> None:
    assert nodes(spec(2, gpus=1, packing=Packing.SPREAD), capacity("a", 2), capacity("b", 4), capacity("c", 8)) == [
        "b",
        "c",
    ]


def test_ranks_are_dealt_out_in_the_natural_order_of_node_names() -> None:
    assert nodes(spec(3, gpus=8), capacity("n10", 8), capacity("n9", 8), capacity("n100", 8)) == ["n9", "n10", "n100"]


def test_a_second_role_joins_the_node_of_the_first_one() -> None:
    roles = (role(1, 1, name="master"), role(2, 1))

    assert nodes(spec(roles=roles), capacity("a", 8), capacity("b", 4)) == ["b", "b", "b"]


def test_a_second_role_gets_what_the_first_one_left() -> None:
    roles = (role(1, 4, name="master"), role(2, 4))

    assert nodes(spec(roles=roles), capacity("a", 8), capacity("b", 4)) == ["b", "a", "a"]


def test_a_role_that_needs_much_is_seated_first_where_it_would_find_no_room_otherwise() -> None:
    wanted = spec(roles=(role(2, cpus=2, name="loader"), role(1, 1, cpus=2)))

    assert nodes(wanted, capacity("a", cpus=2), capacity("b", cpus=2), capacity("c", 1, cpus=4)) == ["a", "c", "c"]


def test_a_role_that_few_nodes_take_is_seated_first_where_it_would_find_no_room_otherwise() -> None:
    wanted = spec(roles=(role(2, name="anywhere"), role(1, image="trainer")), max_per_node=1)
    processes = (RuntimeOffer(kind=RuntimeKind.PROCESS),)
    others = (capacity(name, runtimes=processes) for name in ("b", "c"))

    assert nodes(wanted, capacity("a"), *others) == ["b", "c", "a"]


def test_a_role_that_many_nodes_take_is_seated_first_where_another_would_take_its_best_ones() -> None:
    wanted = spec(roles=(role(1, 1, name="master"), role(5, memory=12 * GIB)), max_per_node=2)
    small, large = capacity("a", 6, memory=16 * GIB), capacity("b", 3, memory=64 * GIB)

    assert nodes(wanted, small, large, capacity("c", memory=64 * GIB)) == ["a", "a", "b", "b", "c", "c"]


def test_no_node_gets_more_executions_than_max_per_node_allows() -> None:
    assert nodes(spec(4, max_per_node=2), capacity("a"), capacity("b"), capacity("c")) == ["a", "a", "b", "b"]


def test_max_per_node_counts_all_roles() -> None:
    wanted = spec(roles=(role(1, name="master"), role(1)), max_per_node=1)

    assert nodes(wanted, capacity("a"), capacity("b")) == ["a", "b"]


def test_cpus_count_in_thousandths() -> None:
    assert nodes(spec(4, cpus=0.5), capacity("a", cpus=2)) == ["a"] * 4
    assert no_fit(spec(5, cpus=0.5), capacity("a", cpus=2)).found == 4


def test_only_gpus_of_the_wanted_model_are_given() -> None:
    mixed = capacity("a", gpus=(gpu("a", 0, "NVIDIA A100"), gpu("a", 1, "NVIDIA H100"), gpu("a", 2, "NVIDIA H100 NVL")))

    assert chosen(spec(roles=(role(2, 1, gpu_model="h100"),)), mixed) == [("GPU-a-1",), ("GPU-a-2",)]


def test_gpus_that_are_joined_by_nvlink_stay_together() -> None:
    pairs = {0: 2, 2: 0, 1: 3, 3: 1}
    room_of_pairs = capacity(
        "a",
        gpus=tuple(gpu("a", index, numa_node=index % 2, nvlink_peers=(f"GPU-a-{pairs[index]}",)) for index in pairs),
    )

    assert sorted(chosen(spec(2, gpus=2), room_of_pairs)) == [("GPU-a-0", "GPU-a-2"), ("GPU-a-1", "GPU-a-3")]


def test_gpus_of_one_numa_node_stay_together() -> None:
    split = capacity("a", gpus=tuple(gpu("a", index, numa_node=(0, 1, 1, 0)[index]) for index in range(4)))

    assert sorted(chosen(spec(2, gpus=2), split)) == [("GPU-a-0", "GPU-a-3"), ("GPU-a-1", "GPU-a-2")]


def test_a_gang_that_does_not_fit_says_how_many_would_and_what_each_node_lacks() -> None:
    wanted, capacities = spec(3, gpus=4), [capacity("a", 4), capacity("b", 2)]

    assert no_fit(wanted, *capacities) == NoFit(wanted=3, found=1, nodes=2)
    assert refusals(wanted, available(*capacities)) == (
        NodeRefusal(node=NodeId("a"), reason="has room for 1; for one more it needs 4 GPUs, 0 are free"),
        NodeRefusal(node=NodeId("b"), reason="needs 4 GPUs, 2 are free"),
    )


def test_a_gang_that_does_not_fit_says_so_in_one_line() -> None:
    assert str(no_fit(spec(3, gpus=4), capacity("a", 4))) == "needs room for 3 executions at once; 1 fits"
    assert str(no_fit(spec(3, gpus=1), capacity("a", 2))) == "needs room for 3 executions at once; 2 fit"


def test_without_nodes_that_is_the_reason() -> None:
    assert str(no_fit(spec(1))) == "needs room for 1 execution, but no node has joined"


@pytest.mark.parametrize(
    ("wanted", "only", "why"),
    [
        (spec(1, cpus=4), capacity("a", cpus=1.5), "needs 4 CPUs, 1.5 are free"),
        (spec(1, memory=4 * GIB), capacity("a", memory=GIB), "needs 4 GiB of memory, 1 GiB are free"),
        (spec(roles=(role(1, 2, gpu_model="H100"),)), capacity("a", 1), "needs 2 H100 GPUs, 1 is free"),
        (
            spec(1, node_labels={"zone": "b"}),
            capacity("a", labels={"zone": "a"}),
            "does not carry the label zone=b",
        ),
        (spec(1), capacity("a", problem="is lost"), "is lost"),
        (
            spec(1),
            capacity("a", runtimes=(RuntimeOffer(kind=RuntimeKind.DOCKER),)),
            "does not run plain processes (its agent offers docker)",
        ),
        (
            spec(1),
            capacity("a", runtimes=(RuntimeOffer(kind=RuntimeKind.PROCESS, problem="no permission"),)),
            "cannot run executions with process: no permission",
        ),
        (
            spec(1, gpus=1),
            capacity("a", 1, runtimes=(RuntimeOffer(kind=RuntimeKind.PROCESS, gpus=False),)),
            "has a process runtime that cannot hand out GPUs",
        ),
        (
            spec(2, max_per_node=1),
            capacity("a"),
            "has room for 1; for one more it has 1 execution of this job, as many as max_per_node allows",
        ),
    ],
)
def test_each_refusal_says_what_is_missing(wanted: JobSpec, only: Capacity, why: str) -> None:
    assert reason(wanted, only) == why


def test_a_node_with_more_given_away_than_it_has_takes_nothing() -> None:
    assert reason(spec(1), capacity("a", cpus=-2)) == "needs 1 CPU, 0 are free"


def test_a_gang_of_containers_needs_a_container_runtime() -> None:
    containers = spec(roles=(role(1),))
    with_image = spec(roles=(role(1, image="busybox"),))
    process_only = capacity("a", gpus=gpus("a", 0), runtimes=(RuntimeOffer(kind=RuntimeKind.PROCESS),))

    assert nodes(containers, process_only) == ["a"]
    assert reason(with_image, process_only) == "does not run containers (its agent offers process)"
