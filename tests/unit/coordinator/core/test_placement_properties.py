"""What holds of every placement, whatever the nodes and the job."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import NoFit, Placement, fits, place, refusals
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.job import JobSpec, Packing, RuntimeKind
from muster.domain.jobs.placing.affinity import (
    NO_AFFINITY,
    NUMERIC,
    WITHOUT_VALUES,
    Affinity,
    LabelExpression,
    LabelOperator,
    PreferredTerm,
)
from muster.domain.jobs.placing.taint import Taint
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.placing.topology import ANYWHERE, Topology
from muster.domain.jobs.ports import node_ports
from tests.builders import available, capacity, gpu, mig_devices, role, spec
from tests.unit.coordinator.core.plain_placement import place_plainly

MODELS = ("A100", "H100")
PROFILES = ("1g.10gb", "3g.40gb")
PORTS = st.sampled_from([(), (), (), (80,), (29_500,), (80, 29_500)]).map(frozenset)
ASKED = st.sampled_from([{}, {}, {}, {"http": 80}, {"master": 29_500}, {"http": 80, "master": 29_500}])
TAINTS = st.builds(
    Taint, key=st.sampled_from("ab"), value=st.sampled_from(["", "1"]), effect=st.sampled_from(TaintEffect)
)
TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from(TolerationOperator),
    value=st.sampled_from(["", "1"]),
    effect=st.none() | st.sampled_from(TaintEffect),
    seconds=st.none() | st.just(60),
)


@st.composite
def expressions(draw: st.DrawFn) -> LabelExpression:
    operator = draw(st.sampled_from(LabelOperator))
    if operator in NUMERIC:
        return LabelExpression(key="type", operator=operator, values=(draw(st.sampled_from(["2", "5", "-1"])),))
    key, values = draw(st.sampled_from([("rack", "r0 r1 r2"), ("zone", "a b"), ("type", "0 3 4"), ("none", "x")]))
    few = st.lists(st.sampled_from(values.split()), min_size=1, max_size=2)
    return LabelExpression(key=key, operator=operator, values=() if operator in WITHOUT_VALUES else tuple(draw(few)))


TERMS = st.lists(expressions(), min_size=1, max_size=2).map(tuple)
AFFINITIES = st.builds(
    Affinity,
    required=st.lists(TERMS, max_size=2).map(tuple),
    preferred=st.lists(st.builds(PreferredTerm, weight=st.sampled_from([1, 3, 100]), all=TERMS), max_size=2).map(tuple),
)
TOPOLOGIES = st.just(ANYWHERE) | st.builds(
    Topology,
    required=st.sampled_from([None, None, "zone", "rack", "block"]),
    preferred=st.sampled_from([None, "none", "zone", "rack", "block"]),
)
every_case = settings(max_examples=100)


@st.composite
def capacities(draw: st.DrawFn, most: int = 5, most_gpus: int = 4) -> list[Capacity]:
    found = []
    for number in range(draw(st.integers(0, most))):
        name = f"n{number}"
        count = draw(st.integers(0, most_gpus))
        found.append(
            capacity(
                name,
                gpus=(
                    *(
                        gpu(name, index, draw(st.sampled_from(MODELS)), numa_node=draw(st.none() | st.integers(0, 1)))
                        for index in range(count)
                    ),
                    *mig_devices(name, *draw(st.lists(st.sampled_from(PROFILES), max_size=3)), index=count),
                ),
                cpus=draw(st.integers(-1, 8)),
                memory=draw(st.integers(0, 8)),
                disk=draw(st.integers(-1, 8)),
                labels=draw(st.sampled_from([{}, {"zone": "a"}])),
                ports=draw(PORTS),
                problem=draw(st.sampled_from([None, None, None, "is lost"])),
                runtimes=draw(
                    st.sampled_from(
                        [capacity("x").runtimes, capacity("x").runtimes, (RuntimeOffer(kind=RuntimeKind.DOCKER),)]
                    )
                ),
            )
        )
    return found


@st.composite
def roles(draw: st.DrawFn, most: int = 4, asked: st.SearchStrategy[dict[str, int]] = ASKED) -> list[object]:
    return [
        role(
            draw(st.integers(1, most)),
            draw(st.integers(0, 3)),
            name=f"role{number}",
            cpus=draw(st.integers(0, 3)),
            memory=draw(st.none() | st.integers(1, 4)),
            disk=draw(st.none() | st.none() | st.integers(1, 4)),
            gpu_model=draw(st.sampled_from([None, "h100"])),
            mig=draw(st.sampled_from([None, None, *PROFILES])),
            ports=draw(asked),
        )
        for number in range(draw(st.integers(1, 3)))
    ]


@st.composite
def specs(
    draw: st.DrawFn, *, single_role: bool = False, packing: Packing | None = None, fixed_ports: bool = True
) -> JobSpec:
    wanted = draw(roles(asked=ASKED if fixed_ports else st.just({})))
    return spec(
        roles=tuple(wanted[:1] if single_role else wanted),
        packing=packing or draw(st.sampled_from(Packing)),
        max_per_node=draw(st.none() | st.integers(1, 3)),
        node_labels=draw(st.sampled_from([{}, {}, {"zone": "a"}])),
    )


@given(specs(), capacities())
@every_case
def test_a_placement_is_whole_and_gives_away_nothing_twice(wanted: JobSpec, having: list[Capacity]) -> None:
    fit = place(wanted, available(*having))
    if isinstance(fit, NoFit):
        return
    assert [seat.rank for seat in fit.seats] == list(range(wanted.size))
    given_away = [gpu for seat in fit.seats for gpu in seat.gpus]
    assert len(given_away) == len(set(given_away))
    for one in having:
        seats = [seat for seat in fit.seats if seat.node == one.node]
        needs = [wanted.role_of(seat.rank).resources for seat in seats]
        models = {gpu.uuid: gpu.model.lower() for gpu in one.gpus}
        profiles = {gpu.uuid: gpu.mig for gpu in one.gpus}
        assert all(profiles[gpu] == need.mig for seat, need in zip(seats, needs, strict=True) for gpu in seat.gpus)
        assert all(len(seat.gpus) == need.gpus for seat, need in zip(seats, needs, strict=True))
        assert all(
            (need.gpu_model or "") in models[gpu] for seat, need in zip(seats, needs, strict=True) for gpu in seat.gpus
        )
        assert not seats or sum(need.cpu_millis for need in needs) <= max(0, one.cpu_millis)
        assert sum(need.memory or 0 for need in needs) <= one.memory
        assert sum(need.disk or 0 for need in needs) <= max(0, one.disk)
        assert wanted.max_per_node is None or len(seats) <= wanted.max_per_node
        assert not seats or (one.problem is None and wanted.node_labels.items() <= one.labels.items())
        given_ports = [number for seat in seats for number in node_ports(wanted, wanted.role_of(seat.rank), seat.rank)]
        assert len(given_ports) == len({*given_ports})
        assert one.ports.isdisjoint(given_ports)
        assert not seats or any(offer.kind is RuntimeKind.PROCESS for offer in one.runtimes)


@given(specs(), capacities())
@every_case
def test_a_refusal_names_every_node_and_is_never_empty(wanted: JobSpec, having: list[Capacity]) -> None:
    fit = place(wanted, available(*having))
    if isinstance(fit, Placement):
        return
    why = refusals(wanted, available(*having))
    assert [refusal.node for refusal in why] == sorted(one.node for one in having)
    assert all(refusal.reason for refusal in why)
    assert 0 <= fit.found < fit.wanted == wanted.size


@given(specs(), capacities())
@every_case
def test_whether_it_fits_is_told_alike_with_and_without_seats(wanted: JobSpec, having: list[Capacity]) -> None:
    assert fits(wanted, available(*having)) == isinstance(place(wanted, available(*having)), Placement)


@given(specs(), capacities(most=9))
@settings(max_examples=150)
def test_it_comes_to_the_same_as_looking_at_every_node(wanted: JobSpec, having: list[Capacity]) -> None:
    assert seats(place(wanted, available(*having))) == place_plainly(wanted, having)


def seats(fit: Placement | NoFit) -> list[tuple[NodeId, tuple[GpuUuid, ...]]] | None:
    """Node and GPUs by rank; None: there is no room."""
    return [(seat.node, seat.gpus) for seat in fit.seats] if isinstance(fit, Placement) else None


@st.composite
def uneven(draw: st.DrawFn, most: int = 12) -> list[Capacity]:
    """Nodes of which hardly two are alike, within and across the bounds of bins."""
    found = []
    for number in range(draw(st.integers(0, most))):
        name = f"n{number}"
        found.append(
            capacity(
                name,
                draw(st.integers(0, 8)),
                cpus=draw(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 3.999, 4.0, 5.0, 7.0, 8.0, 9.5, 31.0])),
                memory=draw(st.integers(0, 9 * 2**30)),
                disk=draw(st.integers(0, 9)),
                labels={
                    **draw(st.sampled_from([{}, {"rack": "r0"}, {"rack": "r1"}, {"rack": "r2"}, {"rack": "r10"}])),
                    **draw(st.sampled_from([{}, {"zone": "a"}, {"zone": "a"}, {"zone": "b"}])),
                    "type": name[-1],
                },
                ports=draw(PORTS),
                pool=draw(st.sampled_from(["a100", "a100", "h100"])),
                taints=draw(st.lists(TAINTS, max_size=2, unique_by=lambda each: (each.key, each.effect)).map(tuple)),
                idle=draw(st.booleans()),
            )
        )
    return found


@st.composite
def asking(draw: st.DrawFn) -> JobSpec:
    """Jobs for nodes with CPUs and memory of which one node can hold several executions."""
    wanted = tuple(
        role(
            draw(st.integers(1, 12)),
            draw(st.sampled_from([0, 0, 1, 2, 4, 8])),
            name=f"role{number}",
            cpus=draw(st.sampled_from([0, 0.25, 0.5, 1, 1.5, 2, 3, 4])),
            memory=draw(st.none() | st.sampled_from([2**28, 2**29, 2**30, 3 * 2**30, 5 * 2**30])),
            disk=draw(st.none() | st.none() | st.integers(1, 5)),
            ports=draw(ASKED),
        )
        for number in range(draw(st.integers(1, 2)))
    )
    return spec(
        roles=wanted,
        packing=draw(st.sampled_from(Packing)),
        max_per_node=draw(st.none() | st.integers(1, 5)),
        node_labels=draw(st.sampled_from([{}, {}, {"zone": "a"}, {"rack": "r1"}, {"rack": "r0", "zone": "b"}])),
        node_types=draw(st.sampled_from([(), (), (), ("1", "2", "4")])),
        exclude_nodes=draw(st.sampled_from([(), (), ("n0", "n3")])),
        tolerations=draw(st.lists(TOLERATIONS, max_size=2).map(tuple)),
        topology=draw(TOPOLOGIES),
        affinity=draw(st.just(NO_AFFINITY) | AFFINITIES),
        exclusive=draw(st.sampled_from([False, False, True])),
    )


POOLS = st.sampled_from([None, None, ("h100", "a100"), ("h100",), ("gone", "a100")])


@given(asking(), uneven(), st.integers(1, 8), POOLS)
@settings(max_examples=200)
def test_on_uneven_nodes_it_comes_to_the_same_as_looking_at_every_node(
    wanted: JobSpec, having: list[Capacity], most_classes: int, pools: tuple[str, ...] | None
) -> None:
    """The more classes there may be, the fewer labels are looked at node by node."""
    rooms = Available(capacities=Capacities(having, most_classes), pools=pools)
    fit = place(wanted, rooms)

    assert seats(fit) == place_plainly(wanted, having, pools)
    assert fits(wanted, rooms) == isinstance(fit, Placement)


@given(asking(), st.lists(uneven(most=6), min_size=1, max_size=4), st.integers(1, 8))
@every_case
def test_where_a_gang_goes_does_not_depend_on_how_its_nodes_came_to_be_as_they_are(
    wanted: JobSpec, courses: list[list[Capacity]], most_classes: int
) -> None:
    now = {each.node: each for course in courses for each in course}
    changed = Capacities(most_classes=most_classes)
    for each in (each for course in courses for each in course):
        changed.put(each)
        place(wanted, Available(capacities=changed))

    assert place(wanted, Available(capacities=changed)) == place(wanted, available(*now.values()))


@given(specs(), capacities(), st.integers(0, 4))
@every_case
def test_a_node_that_is_left_out_might_as_well_not_be_there(
    wanted: JobSpec, having: list[Capacity], which: int
) -> None:
    without = NodeId(f"n{which}")
    others = [capacity for capacity in having if capacity.node != without]

    assert place(wanted, replace(available(*having), without=without)) == place(wanted, available(*others))


@given(specs(), capacities(), st.randoms())
@every_case
def test_the_order_of_the_rooms_does_not_matter(wanted: JobSpec, having: list[Capacity], chance: Random) -> None:
    shuffled = list(having)
    chance.shuffle(shuffled)

    assert place(wanted, available(*shuffled)) == place(wanted, available(*having))


def fits_somehow(wanted: JobSpec, having: Sequence[Capacity]) -> bool:
    """Whether there is any way to deal out the executions; only for one role."""
    return any(
        all(fits_on(wanted, count, one) for one, count in ((one, dealt.count(one.node)) for one in having))
        and any(one.ports.isdisjoint(ports(wanted, 0)) for one in having if one.node in dealt)
        for dealt in combinations_with_replacement([one.node for one in having], wanted.size)
    )


def ports(wanted: JobSpec, rank: int) -> frozenset[int]:
    """Fixed ports of one rank of a job with one role."""
    return node_ports(wanted, wanted.roles[0], 0 if wanted.size == 1 else rank)


def fits_on(wanted: JobSpec, count: int, one: Capacity) -> bool:
    """Whether a node can hold so many executions."""
    need = wanted.roles[0].resources
    if count == 0:
        return True
    free = [gpu for gpu in one.gpus if (need.gpu_model or "") in gpu.model.lower() and gpu.mig == need.mig]
    return (
        one.problem is None
        and wanted.node_labels.items() <= one.labels.items()
        and any(offer.kind is RuntimeKind.PROCESS for offer in one.runtimes)
        and len(free) >= count * need.gpus
        and (need.cpu_millis == 0 or one.cpu_millis >= count * need.cpu_millis)
        and (not ports(wanted, 1) or (count == 1 and one.ports.isdisjoint(ports(wanted, 1))))
        and one.memory >= count * (need.memory or 0)
        and (not need.disk or one.disk >= count * need.disk)
        and (wanted.max_per_node is None or count <= wanted.max_per_node)
    )


@given(specs(single_role=True), capacities(most=4))
@every_case
def test_identical_executions_are_placed_whenever_there_is_any_way_to(wanted: JobSpec, having: list[Capacity]) -> None:
    assert isinstance(place(wanted, available(*having)), Placement) == fits_somehow(wanted, having)


@given(specs(single_role=True, packing=Packing.PACK, fixed_ports=False), capacities(most=4))
@every_case
def test_pack_uses_as_few_nodes_as_possible(wanted: JobSpec, having: list[Capacity]) -> None:
    fit = place(wanted, available(*having))
    if isinstance(fit, NoFit):
        return
    used = len({seat.node for seat in fit.seats})
    fewer = (list(some) for some in combinations_with_replacement(having, used - 1)) if used > 1 else iter(())
    assert not any(fits_somehow(wanted, some) for some in fewer if len({one.node for one in some}) == len(some)), (
        "fewer nodes would do"
    )


@given(specs(single_role=True, packing=Packing.SPREAD, fixed_ports=False), capacities(most=4))
@every_case
def test_spread_gives_no_node_two_more_than_another_that_could_take_one(
    wanted: JobSpec, having: list[Capacity]
) -> None:
    fit = place(wanted, available(*having))
    if isinstance(fit, NoFit):
        return
    counts = Counter(seat.node for seat in fit.seats)
    for one in having:
        if fits_on(wanted, counts[one.node] + 1, one):
            assert max(counts.values()) <= counts[one.node] + 1
