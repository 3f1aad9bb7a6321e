"""Gangs whose nodes are to be close to each other: in one zone or rack, or in as few of them as can be."""

from typing import Any

import pytest

from coordinator.core.answers import Refused
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import Placement, place
from coordinator.views.explain import explain
from muster.domain.gangs.plan import Stage
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Packing
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, PreferredTerm
from muster.domain.jobs.placing.taint import Taint
from muster.domain.jobs.placing.toleration import TaintEffect
from muster.domain.jobs.placing.topology import Topology
from tests.builders import World, available, capacity, inventory, role, spec

RACKS = {"n1": "r1", "n2": "r1", "n3": "r2", "n5": "r3", "n6": "r3", "n7": "r3"}
ZONES = {"r1": "za", "r2": "za", "r3": "zb"}


def node(name: str, *, free: int = 8, zoned: bool = True, **fields: Any) -> Capacity:
    rack = RACKS[name]
    labels = {"rack": rack, **({"zone": ZONES[rack]} if zoned else {})}
    return capacity(name, free, labels=labels, **fields)


def nodes(*, zoned: bool = True, full: tuple[str, ...] = ()) -> list[Capacity]:
    return [node(name, free=0 if name in full else 8, zoned=zoned) for name in RACKS]


def gang(count: int, required: str | None = None, preferred: str | None = None, **fields: Any) -> JobSpec:
    """Executions that need whole nodes."""
    return spec(count, gpus=8, topology=Topology(required=required, preferred=preferred), **fields)


def placed(wanted: JobSpec, having: list[Capacity]) -> list[str]:
    """Nodes by rank; none where it does not fit."""
    fit = place(wanted, available(*having))
    return [seat.node for seat in fit.seats] if isinstance(fit, Placement) else []


def test_a_gang_goes_to_the_tightest_rack_that_holds_it() -> None:
    """Scenario T1: racks of two, of one and of three free nodes."""
    assert placed(gang(2, "rack"), nodes(zoned=False)) == ["n1", "n2"]


def test_a_gang_that_needs_a_zone_goes_to_one_rack_of_it_if_one_holds_it() -> None:
    """Scenario T2: a zone is required and a rack preferred."""
    assert placed(gang(3, "zone", "rack"), nodes()) == ["n5", "n6", "n7"]


def test_a_gang_that_no_rack_holds_goes_to_as_few_as_can_be_and_neighbours_share_one() -> None:
    """Scenario T3: no rack has three free nodes."""
    assert placed(gang(3, preferred="rack"), nodes(full=("n7",))) == ["n1", "n2", "n3"]


def test_a_gang_that_no_zone_holds_waits_however_much_is_free() -> None:
    """Scenario T4: no zone has four free nodes."""
    fit = place(gang(4, "zone"), available(*nodes()))

    assert str(fit) == ("needs room for 4 executions at once; topology: at most 3 of 4 in a zone (za has 3, zb has 3)")
    assert placed(gang(4), nodes()) == ["n3", "n5", "n6", "n7"]


def test_gangs_with_gpus_stay_together_even_where_nothing_is_said_unless_they_say_none() -> None:
    assert placed(gang(2), nodes(full=("n2",))) == ["n5", "n6"]
    assert placed(gang(2, preferred="none"), nodes(full=("n2",))) == ["n1", "n3"]


def test_gangs_without_gpus_and_spread_ones_stay_together_only_where_they_say_so() -> None:
    having = nodes(full=("n2",))
    large, spread = role(2, cpus=64), {"packing": Packing.SPREAD}

    assert placed(spec(roles=(large,)), having) == ["n1", "n2"]
    assert placed(gang(2, **spread), having) == ["n1", "n3"]
    assert placed(gang(2, "rack", **spread), having) == ["n5", "n6"]


def test_a_gang_that_one_node_holds_goes_to_the_tightest_node() -> None:
    having = [*nodes(full=("n6",)), node("n6", free=2)]

    assert placed(spec(2, gpus=1), having) == ["n6", "n6"]


def test_a_node_without_the_label_of_a_level_is_in_no_domain_of_it_and_of_finer_ones() -> None:
    bare = capacity("n8", 8, labels={"rack": "r1"})

    assert placed(gang(3, "rack"), [bare, *nodes(full=("n7",))]) == []
    assert placed(gang(6), [bare, *nodes(full=("n7",))]) == ["n1", "n2", "n3", "n5", "n6", "n8"]


def test_racks_of_one_name_in_two_zones_are_two_racks() -> None:
    having = [capacity(f"n{zone}", 8, labels={"zone": zone, "rack": "r1"}) for zone in "ab"]

    assert placed(gang(2, "rack"), having) == []


def test_nodes_that_cost_less_come_before_few_domains_and_what_is_required_before_both() -> None:
    worn = (Taint(key="worn", effect=TaintEffect.PREFER_NO_SCHEDULE),)
    having = [*nodes()[1:], node("n1", taints=worn)]

    assert placed(gang(2, preferred="rack"), having) == ["n5", "n6"]
    assert placed(gang(5), having) == ["n2", "n3", "n5", "n6", "n7"]
    assert placed(gang(2, "rack"), [each for each in having if each.node not in {"n5", "n6", "n7"}]) == ["n1", "n2"]


def test_preferred_nodes_decide_which_of_the_racks_it_is() -> None:
    third = PreferredTerm(all=(LabelExpression(key="rack", values=("r3",)),))

    assert placed(gang(2, "rack", affinity=Affinity(preferred=(third,))), nodes()) == ["n5", "n6"]


def test_roles_of_a_gang_stay_together_too() -> None:
    wanted = spec(roles=(role(1, 8, name="chief"), role(2, 8)), topology=Topology(required="rack"))

    assert placed(wanted, nodes()) == ["n5", "n6", "n7"]
    assert placed(spec(roles=(role(2, 8, name="a"), role(2, 8)), topology=Topology(required="rack")), nodes()) == []


def test_levels_count_in_which_nodes_of_the_pool_have_a_label() -> None:
    """Another pool has blocks; in this one racks are racks all the same."""
    other = capacity("b1", 8, labels={"pool": "b", "zone": "zb", "block": "b1", "rack": "r9"}, pool="b")

    assert placed(gang(2, "rack"), [other, *nodes()]) == ["n1", "n2"]


def test_a_label_with_too_many_values_for_classes_is_a_level_as_well() -> None:
    having = [capacity(f"n{number}", 8, labels={"rack": f"r{number // 2}"}) for number in range(20)]
    rooms = Available(capacities=Capacities(having, most_classes=2))

    fit = place(gang(2, "rack"), rooms)

    assert isinstance(fit, Placement)
    assert [seat.node for seat in fit.seats] == ["n0", "n1"]


@pytest.fixture
def world() -> World:
    found = World()
    for name, rack in RACKS.items():
        found.connect(name, inventory(name, 8, labels={"rack": rack, "zone": ZONES[rack]}))
    return found


def test_why_says_in_which_domain_there_is_how_much_room(world: World) -> None:
    world.submit(spec(1, gpus=8, node_labels={"rack": "r1"}))
    world.connect("n9", inventory("n9", 8))
    job = world.submit(gang(3, "zone", affinity=Affinity(required=((LabelExpression(key="zone", values=("za",)),),))))
    told = explain(world.cluster, job, world.now)

    assert "topology: at most 2 of 3 in a zone (za has 2)" in told.summary
    assert {refusal.node: refusal.reason for refusal in told.refusals} == {
        "n1": "needs 8 GPUs, 0 are free",
        "n2": "is in the zone za, which has room for 2 of 3",
        "n3": "is in the zone za, which has room for 2 of 3",
        "n5": "does not match affinity.required[0]: zone must be za and is zb",
        "n6": "does not match affinity.required[0]: zone must be za and is zb",
        "n7": "does not match affinity.required[0]: zone must be za and is zb",
        "n9": "does not carry the label zone, so it is in no zone",
    }


def test_why_says_that_the_gang_would_fit_if_it_required_no_level(world: World) -> None:
    world.submit(spec(1, gpus=8, node_labels={"rack": "r3"}))
    job = world.submit(gang(3, "rack"))
    changes = {each.change: each.why for each in explain(world.cluster, job, world.now).changes}

    assert changes["no topology.required"] == "there is room, but not in one rack"


def test_a_gang_that_no_domain_could_ever_hold_is_refused(world: World) -> None:
    too_many, misspelt = world.try_submit(gang(4, "rack")), world.try_submit(gang(2, "rakc"))

    assert isinstance(too_many, Refused)
    assert too_many.message == (
        "the fleet is too small for it: needs room for 4 executions at once; "
        "topology: at most 3 of 4 in a rack (zb/r3 has 3, za/r1 has 2, za/r2 has 1)"
    )
    assert isinstance(misspelt, Refused)
    assert misspelt.message.endswith(
        "its pool has no level rakc; its levels are zone, rack; no node has the label rakc; did you mean rack?"
    )


def test_what_is_kept_for_the_head_is_kept_in_one_domain_and_others_are_placed_beside_it(world: World) -> None:
    """One job on each rack: the head waits for the rack that could hold it, and a small one goes elsewhere."""
    held = [world.submit(spec(1, gpus=8, node_labels={"rack": rack})) for rack in ("r1", "r3")]
    head = world.submit(gang(3, "rack"))
    small = [world.submit(spec(1, gpus=8)) for _ in range(3)]
    reservation = world.cluster.load.reservation

    assert reservation is not None
    assert [seat.node for seat in reservation.fit.seats] == ["n5", "n6", "n7"]
    assert [world.seats(each) for each in small] == [["n2"], ["n3"], [None]]
    assert world.seats(held[1]) == ["n5"]
    assert world.seats(head) == [None] * 3


def test_seats_that_are_kept_are_given_up_when_their_nodes_are_no_longer_together(world: World) -> None:
    world.submit(spec(1, gpus=8, node_labels={"rack": "r3"}))
    head = world.submit(gang(3, "rack"))
    assert world.cluster.load.reservation is not None

    world.connect("n7", inventory("n7", 8, labels={"rack": "r2", "zone": "za"}))

    assert world.seats(head) == [None] * 3
    assert world.cluster.load.reservation is None


def test_a_gang_is_placed_in_one_rack_as_soon_as_one_is_free(world: World) -> None:
    held = world.submit(spec(1, gpus=8, node_labels={"rack": "r3"}))
    head = world.submit(gang(3, "rack"))

    world.tell(held, 0, Stage.EXITED, exit=Exit(code=0))

    assert world.seats(head) == ["n5", "n6", "n7"]
