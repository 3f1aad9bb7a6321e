"""Capacities of nodes in classes, kept up to date."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.placement.capacity import Capacities, Capacity, LiveCapacities
from muster.domain.ids import NodeId
from tests.builders import capacity

NODES = [NodeId(f"n{number}") for number in range(5)]
kinds = st.builds(capacity, st.sampled_from(NODES), st.integers(0, 2), problem=st.sampled_from([None, None, "is lost"]))


def content(capacities: Capacities) -> list[tuple[int, list[str]]]:
    """GPUs and nodes of each group."""
    return sorted((len(group.sample.gpus), [node for _, node in group.keys]) for group in capacities.classes())


@given(st.lists(kinds | st.sampled_from(NODES), max_size=20))
def test_a_stock_that_was_changed_is_like_one_that_was_made_so(steps: list[Capacity | NodeId]) -> None:
    changed, capacities = Capacities(), dict[NodeId, Capacity]()
    for step in steps:
        if isinstance(step, Capacity):
            changed.put(step)
            capacities[step.node] = step
        else:
            changed.drop(step)
            capacities.pop(step, None)

    assert content(changed) == content(Capacities(capacities.values()))
    assert {each.node: each for each in changed} == capacities


def test_equal_rooms_are_one_group_whatever_their_gpus_are_called() -> None:
    assert content(Capacities([capacity("n10", 2), capacity("n9", 2), capacity("n1", 1)])) == [
        (1, ["n1"]),
        (2, ["n9", "n10"]),
    ]


def test_nothing_is_worked_out_until_it_is_needed_and_then_once() -> None:
    asked: list[NodeId] = []

    def work_out(node: NodeId) -> Capacity:
        asked.append(node)
        return capacity(node)

    live = LiveCapacities(work_out, NODES)
    live.touch(NODES[0])
    assert asked == []

    live.fresh()
    live.fresh()
    assert sorted(asked) == NODES

    live.touch(NODES[1])
    assert (live.of(NODES[1]).node, len(live.fresh()), asked[len(NODES) :]) == (NODES[1], len(NODES), [NODES[1]])


def test_a_node_that_is_forgotten_is_in_no_group() -> None:
    live = LiveCapacities(capacity, NODES[:2])
    live.fresh()
    live.forget(NODES[0])

    assert content(live.fresh()) == [(0, [NODES[1]])]


def test_rooms_with_other_labels_are_not_alike() -> None:
    plain = capacity("n1")

    assert len(content(Capacities([plain, replace(plain, node=NODES[2], labels={"zone": "a"})]))) == 2
