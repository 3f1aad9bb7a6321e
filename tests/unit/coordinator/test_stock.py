"""Rooms in groups of equal ones, kept up to date."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.stock import LiveStock, Room, Stock
from muster.domain.ids import NodeId
from tests.builders import room

NODES = [NodeId(f"n{number}") for number in range(5)]
kinds = st.builds(room, st.sampled_from(NODES), st.integers(0, 2), problem=st.sampled_from([None, None, "is lost"]))


def content(stock: Stock) -> list[tuple[int, list[str]]]:
    """GPUs and nodes of each group."""
    return sorted((len(group.sample.gpus), [node for _, node in group.keys]) for group in stock.groups())


@given(st.lists(kinds | st.sampled_from(NODES), max_size=20))
def test_a_stock_that_was_changed_is_like_one_that_was_made_so(steps: list[Room | NodeId]) -> None:
    changed, rooms = Stock(), dict[NodeId, Room]()
    for step in steps:
        if isinstance(step, Room):
            changed.put(step)
            rooms[step.node] = step
        else:
            changed.drop(step)
            rooms.pop(step, None)

    assert content(changed) == content(Stock(rooms.values()))
    assert {each.node: each for each in changed} == rooms


def test_equal_rooms_are_one_group_whatever_their_gpus_are_called() -> None:
    assert content(Stock([room("n10", 2), room("n9", 2), room("n1", 1)])) == [(1, ["n1"]), (2, ["n9", "n10"])]


def test_nothing_is_worked_out_until_it_is_needed_and_then_once() -> None:
    asked: list[NodeId] = []

    def work_out(node: NodeId) -> Room:
        asked.append(node)
        return room(node)

    live = LiveStock(work_out, NODES)
    live.touch(NODES[0])
    assert asked == []

    live.fresh()
    live.fresh()
    assert sorted(asked) == NODES

    live.touch(NODES[1])
    assert (live.room(NODES[1]).node, len(live.fresh()), asked[len(NODES) :]) == (NODES[1], len(NODES), [NODES[1]])


def test_a_node_that_is_forgotten_is_in_no_group() -> None:
    live = LiveStock(room, NODES[:2])
    live.fresh()
    live.forget(NODES[0])

    assert content(live.fresh()) == [(0, [NODES[1]])]


def test_rooms_with_other_labels_are_not_alike() -> None:
    plain = room("n1")

    assert len(content(Stock([plain, replace(plain, node=NODES[2], labels={"zone": "a"})]))) == 2
