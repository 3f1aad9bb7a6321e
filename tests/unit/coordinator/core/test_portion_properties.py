"""Any nodes with whole and shared GPUs, and any jobs that want portions: as if every node had been looked at."""

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import Placement, fits, place, refusals
from coordinator.core.placement.portions.shared_gpu import SharedGpu
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.jobs.job import JobSpec, Packing, Role
from muster.domain.jobs.placing.topology import ANYWHERE, Topology
from tests.builders import GIB, available, capacity, gpu, mig_devices, role, spec
from tests.portion_invariants import no_gpu_is_given_beyond_what_it_has
from tests.unit.coordinator.core.plain_placement import place_plainly

SIZES = {"NVIDIA H100": (80 * GIB, 80 * GIB - 2**20), "NVIDIA A100": (40 * GIB, 80 * GIB)}
LEFT = st.sampled_from([0, 1, 100, 250, 400, 500, 900])
every_case = settings(max_examples=120)


@st.composite
def sharing(draw: st.DrawFn, most: int = 8) -> list[Capacity]:
    """Nodes of whose GPUs some are free, some are shared and some are given."""
    found = []
    for number in range(draw(st.integers(0, most))):
        name, free, shared = f"n{number}", [], []
        models = draw(st.sampled_from([["NVIDIA H100"], ["NVIDIA A100"], list(SIZES)]))
        for index in range(draw(st.integers(0, 4))):
            model = draw(st.sampled_from(models))
            one = gpu(name, index, model, memory=draw(st.sampled_from(SIZES[model])), numa_node=index // 2)
            match draw(st.sampled_from(["free", "free", "shared", "given"])):
                case "free":
                    free.append(one)
                case "shared":
                    left = draw(LEFT)
                    shared.append(SharedGpu(one, left, draw(st.sampled_from([left, 1000])) * one.memory // 1000))
        free += draw(st.sampled_from([(), mig_devices(name, "1g.10gb", index=7)]))
        known = {(model, size >> 30) for model in models for size in SIZES[model]}
        found.append(
            capacity(
                name,
                gpus=tuple(free),
                shared=tuple(shared),
                gpu_sizes=draw(st.sampled_from([(), tuple(sorted(known))])),
                cpus=draw(st.sampled_from([0.5, 2, 3, 64])),
                features=ALL_FEATURES,
                labels=draw(st.sampled_from([{}, {"rack": "r0"}, {"rack": "r1"}])),
                pool=draw(st.sampled_from(["a100", "a100", "h100"])),
                problem=draw(st.sampled_from([None, None, None, "is lost"])),
            )
        )
    return found


@st.composite
def parts(draw: st.DrawFn, name: str) -> Role:
    """Executions that want portions, or whole GPUs."""
    kind = draw(st.sampled_from(["portion", "portion", "memory", "whole"]))
    asked: dict[str, Any] = {}
    if kind == "portion":
        asked = {"gpu_portion": draw(st.sampled_from([10, 100, 250, 333, 400, 500, 600, 999]))}
    elif kind == "memory":
        asked = {"gpu_memory": draw(st.sampled_from([10, 20, 27, 40, 41, 80, 100])) * GIB}
    model = draw(st.sampled_from([None, None, "h100"]))
    cpus = draw(st.sampled_from([0, 0.25, 1]))
    return role(draw(st.integers(1, 7)), draw(st.integers(1, 3)), name=name, cpus=cpus, gpu_model=model, **asked)


@st.composite
def wishes(draw: st.DrawFn) -> JobSpec:
    """Jobs of which some executions want portions."""
    return spec(
        roles=tuple(draw(parts(f"role{number}")) for number in range(draw(st.integers(1, 2)))),
        packing=draw(st.sampled_from([Packing.PACK, Packing.PACK, Packing.SPREAD])),
        max_per_node=draw(st.none() | st.integers(1, 3)),
        node_labels=draw(st.sampled_from([{}, {}, {"rack": "r0"}])),
        topology=draw(st.sampled_from([ANYWHERE, ANYWHERE, Topology(required="rack"), Topology(preferred="rack")])),
    )


@given(wishes(), sharing(), st.sampled_from([1, 256]))
@every_case
def test_it_comes_to_the_same_as_looking_at_every_node(
    wanted: JobSpec, having: list[Capacity], most_classes: int
) -> None:
    rooms = Available(capacities=Capacities(having, most_classes))
    fit = place(wanted, rooms)

    found = [(seat.node, seat.gpus) for seat in fit.seats] if isinstance(fit, Placement) else None
    assert found == place_plainly(wanted, having)
    assert fits(wanted, rooms) == isinstance(fit, Placement)


@given(wishes(), sharing())
@every_case
def test_no_gpu_is_given_beyond_what_is_left_of_it(wanted: JobSpec, having: list[Capacity]) -> None:
    fit = place(wanted, available(*having))
    if not isinstance(fit, Placement):
        why = refusals(wanted, available(*having))
        assert [each.node for each in why] == sorted(one.node for one in having)
        assert all(each.reason for each in why)
        return
    for one in having:
        held = [(wanted.role_of(seat.rank).resources, seat.gpus) for seat in fit.seats if seat.node == one.node]
        left = {each.gpu.uuid: each for each in one.shared}
        no_gpu_is_given_beyond_what_it_has("given", one.node, one.gpus, held)
        for need, gpus in held:
            assert len(set(gpus)) == need.gpus
            for uuid in gpus:
                if uuid not in left:
                    assert uuid in {each.uuid for each in one.gpus}
                    continue
                assert need.portion is not None, "a shared GPU is never given whole"
                left[uuid] = left[uuid].without(need.portion)
        assert all(each.thousandths >= 0 and each.memory >= 0 for each in left.values())


@given(wishes(), sharing(), sharing(), st.randoms())
@every_case
def test_where_a_gang_goes_does_not_depend_on_how_nodes_came_to_be_as_they_are(
    wanted: JobSpec, before: list[Capacity], now: list[Capacity], chance: Random
) -> None:
    changed, shuffled = Capacities(before), list(now)
    chance.shuffle(shuffled)
    for each in before[len(now) :]:
        changed.drop(each.node)
    for each in shuffled:
        place(wanted, Available(capacities=changed))
        changed.put(each)

    assert place(wanted, Available(capacities=changed)) == place(wanted, available(*now))


@given(sharing(most=1), sharing(most=1), wishes())
@every_case
def test_the_version_grows_whenever_something_fits_that_did_not(
    before: list[Capacity], after: list[Capacity], wanted: JobSpec
) -> None:
    if not before or not after:
        return
    capacities = Capacities(before)
    fitted, version = fits(wanted, Available(capacities=capacities)), capacities.version
    capacities.put(replace(after[0], gpu_sizes=before[0].gpu_sizes))

    assert fitted or not fits(wanted, Available(capacities=capacities)) or capacities.version > version
