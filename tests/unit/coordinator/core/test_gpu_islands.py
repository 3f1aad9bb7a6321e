"""Which GPUs of a node an execution gets: islands that NVLink joins stay whole where they can."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.placement.devices import islands, pick
from muster.domain.fleet.node import Gpu
from tests.builders import gpu


def joined(*groups: Sequence[int], numa_nodes: Sequence[int | None] = (0,) * 16) -> list[Gpu]:
    """The GPUs of these indices, where those of a group reach each other over NVLink."""
    return [
        gpu(
            "a",
            index,
            numa_node=numa_nodes[index],
            nvlink_peers=tuple(f"GPU-a-{peer}" for peer in group if peer != index),
        )
        for group in groups
        for index in group
    ]


def picked(gpus: Sequence[Gpu], count: int) -> list[int]:
    """The indices of the GPUs that an execution gets."""
    return [next(each.index for each in gpus if each.uuid == uuid) for uuid in pick(gpus, count)]


def test_d1_the_smallest_island_that_holds_them_is_taken_and_otherwise_as_few_as_can_be() -> None:
    """Scenario D1: two islands of four GPUs, of which one has two free."""
    free = joined((0, 1), (4, 5, 6, 7))

    assert picked(free, 2) == [0, 1]
    assert picked(free, 4) == [4, 5, 6, 7]
    assert picked(joined((0, 1), (4, 5)), 3) == [0, 1, 4]


def test_what_is_left_over_comes_out_of_the_smallest_island_that_holds_it() -> None:
    assert picked(joined((0, 1), (2, 3, 4), (5, 6, 7, 8)), 5) == [0, 5, 6, 7, 8]


def test_gpus_that_others_join_are_in_one_island() -> None:
    chain = [
        gpu("a", index, nvlink_peers=tuple(f"GPU-a-{peer}" for peer in (index - 1, index + 1) if 0 <= peer < 3))
        for index in range(3)
    ]

    assert [[each.index for each in island] for island in islands(chain)] == [[0, 1, 2]]


def test_inside_an_island_those_of_one_numa_node_are_taken() -> None:
    assert picked(joined((0, 1, 2, 3), numa_nodes=(0, 1, 1, 1)), 3) == [1, 2, 3]


def test_without_nvlink_numa_nodes_stay_whole_where_they_can() -> None:
    assert picked(joined((0,), (1,), (2,), (3,), numa_nodes=(0, 0, 0, 1)), 1) == [3]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_no_island_is_broken_for_what_a_smaller_one_holds(sizes: list[int], data: st.DataObject) -> None:
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    groups = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    gpus = joined(*groups, numa_nodes=[place for place, size in enumerate(sizes) for _ in range(size)])
    count = data.draw(st.integers(1, len(gpus)))

    chosen = set(picked(gpus, count))

    assert len(chosen) == count
    touched = [len(group) for group in groups if chosen.intersection(group)]
    fewest = next(number for number in range(1, len(sizes) + 1) if sum(sorted(sizes)[-number:]) >= count)
    assert len(touched) == fewest
    if fewest == 1:
        assert touched[0] == min(size for size in sizes if size >= count)
