"""Capacities of nodes in classes, kept up to date."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.live_capacities import LiveCapacities
from muster.domain.ids import NodeId
from tests.builders import capacity

NODES = [NodeId(f"n{number}") for number in range(5)]
kinds = st.builds(capacity, st.sampled_from(NODES), st.integers(0, 2), problem=st.sampled_from([None, None, "is lost"]))


def content(capacities: Capacities) -> list[tuple[int, list[str]]]:
    """GPUs and nodes of each bin."""
    bins = (each for found in capacities.classes() for level in found.levels.values() for each in level.bins.values())
    return sorted((each.gpus, [node for _, node in each.keys]) for each in bins)


@given(st.lists(kinds | st.sampled_from(NODES), max_size=20))
def test_capacities_that_were_changed_are_like_those_that_were_made_so(steps: list[Capacity | NodeId]) -> None:
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


def test_nodes_with_equally_many_free_gpus_are_in_one_bin_whatever_these_are_called() -> None:
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


def test_a_node_that_is_forgotten_is_in_no_bin() -> None:
    live = LiveCapacities(capacity, NODES[:2])
    live.fresh()
    live.forget(NODES[0])

    assert content(live.fresh()) == [(0, [NODES[1]])]


def test_nodes_with_other_labels_are_in_other_bins() -> None:
    plain = capacity("n1")

    assert len(content(Capacities([plain, replace(plain, node=NODES[2], labels={"zone": "a"})]))) == 2


def test_nodes_with_about_as_many_free_cpus_are_in_one_bin() -> None:
    cpus = {"n1": 4.0, "n2": 7.999, "n3": 8.0, "n4": 0.5, "n5": -2.0}

    assert content(Capacities([capacity(node, cpus=count) for node, count in cpus.items()])) == [
        (0, ["n1", "n2"]),
        (0, ["n3"]),
        (0, ["n4", "n5"]),
    ]


def test_a_label_with_too_many_values_is_part_of_no_class() -> None:
    nodes = [
        capacity(f"n{number}", labels={"host": f"n{number}", "rack": f"r{number // 10}", "zone": "ab"[number % 2]})
        for number in range(40)
    ]

    few = Capacities(nodes, most_classes=8)
    assert (few.loose, len(list(few.classes()))) == (frozenset({"host"}), 8)

    fewer = Capacities(nodes, most_classes=7)
    assert (fewer.loose, len(list(fewer.classes()))) == (frozenset({"host", "rack"}), 2)


def test_capacities_have_a_new_version_when_something_may_fit_that_did_not_fit() -> None:
    rooms = Capacities([capacity("n1", 2, ports=frozenset({80}))])
    before = rooms.version
    rooms.put(capacity("n1", 1, cpus=3, ports=frozenset({80, 81})))
    rooms.put(capacity("n1", 1, problem="is lost"))
    assert rooms.version == before

    for other in (
        capacity("n1", 1, cpus=3, ports=frozenset({80, 81})),
        capacity("n1", 1, cpus=4, ports=frozenset({80, 81})),
        capacity("n1", 1, cpus=4, ports=frozenset({80})),
        capacity("n1", 2, cpus=4, ports=frozenset({80})),
        capacity("n1", 2, cpus=4, ports=frozenset({80}), labels={"zone": "a"}),
        capacity("n2"),
    ):
        before = rooms.version
        rooms.put(other)
        assert rooms.version == before + 1


def test_a_capacity_with_fewer_labels_has_all_else() -> None:
    whole = Capacity(
        **{field.name: f"any {field.name}" for field in fields(Capacity) if field.name != "labels"},  # type: ignore[arg-type]  # whatever it is, it is kept
        labels={"rack": "7", "zone": "a"},
    )

    assert whole.with_labels(["zone", "host"]) == replace(whole, labels={"zone": "a"})
