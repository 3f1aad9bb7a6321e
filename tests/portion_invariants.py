"""What must hold of portions of GPUs after every step; each check is a sentence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.capacity import Capacity
from muster.domain.fleet.node import Gpu
from muster.domain.ids import ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.job import Resources
from muster.domain.jobs.placing.portion import Portion

Held = tuple[Resources, tuple[GpuUuid, ...]]
"""What an execution asked for, and the GPUs that it has or will have."""


def portions_of(held: Iterable[Held]) -> dict[GpuUuid, Counter[Portion]]:
    """The portions that are given, by GPU."""
    found: dict[GpuUuid, Counter[Portion]] = {}
    for need, gpus in held:
        for gpu in gpus if need.portion is not None else ():
            assert need.portion is not None
            found.setdefault(gpu, Counter())[need.portion] += 1
    return found


def whole_of(held: Iterable[Held]) -> list[GpuUuid]:
    """The GPUs that are given whole."""
    return [gpu for need, gpus in held if need.portion is None for gpu in gpus]


def no_gpu_is_given_beyond_what_it_has(what: str, node: NodeId, gpus: Sequence[Gpu], held: Iterable[Held]) -> None:
    """A whole GPU is given to one, and portions come to no more than a thousand thousandths and the memory there is."""
    everything = list(held)
    whole, portions = whole_of(everything), portions_of(everything)
    assert len(set(whole)) == len(whole), f"GPUs of {node} {what} twice: {whole}"
    assert portions.keys().isdisjoint(whole), f"GPUs of {node} {what} whole and in portions: {whole}"
    sizes = {gpu.uuid: gpu.memory for gpu in gpus}
    for gpu, given in portions.items():
        if gpu in sizes:
            shares = [portion.of(sizes[gpu]) for portion, count in given.items() for _ in range(count)]
            thousandths, memory = sum(each.thousandths for each in shares), sum(each.memory for each in shares)
            assert thousandths <= 1000, f"{thousandths} thousandths of {gpu} are {what}"
            assert memory <= sizes[gpu], f"{memory} bytes of {gpu} are {what}, which has {sizes[gpu]}"


def shared_gpus_have_what_is_left(
    node: NodeId, gpus: Sequence[Gpu], free: Capacity, portions: Mapping[GpuUuid, Mapping[Portion, int]]
) -> None:
    """A GPU of which portions are given is offered with what they leave of it, and not as a whole."""
    left: dict[GpuUuid, tuple[int, int]] = {}
    for gpu in gpus:
        if gpu.usable and gpu.uuid in portions:
            given = [portion.of(gpu.memory) for portion, count in portions[gpu.uuid].items() for _ in range(count)]
            left[gpu.uuid] = (
                1000 - sum(each.thousandths for each in given),
                gpu.memory - sum(each.memory for each in given),
            )
    offered = {each.gpu.uuid: (each.thousandths, each.memory) for each in free.shared}
    assert offered == left, f"what is left of the shared GPUs of {node}"


def nodes_that_share_are_known(capacities: Iterable[Capacity], known: Iterable[NodeId]) -> None:
    """A search for a portion comes to all nodes that have one left of a shared GPU."""
    there = {each.node for each in capacities if any(gpu.thousandths > 0 for gpu in each.shared)}
    assert set(known) == there, "nodes with shared GPUs"


def held_on(cluster: Cluster, node: NodeId) -> list[Held]:
    """What executions hold of the GPUs of a node."""
    used = cluster.load.used(node).executions
    there = [each for each in cluster.load.planned(node) if each.id in used]
    return [(cluster.jobs[each.job].spec.role_of(each.rank).resources, each.gpus) for each in there]


def claimed_on(cluster: Cluster, node: NodeId) -> list[Held]:
    """What is claimed of the GPUs of a node."""
    return [
        (cluster.jobs[attempt.job].spec.role_of(seat.rank).resources, seat.gpus)
        for attempt in cluster.attempts.values()
        if attempt.claim is not None
        for seat in attempt.claim.seats
        if seat.node == node
    ]


def gpus_are_as_asked(whose: ExecutionId, need: Resources, gpus: Iterable[Gpu]) -> None:
    """MIG devices are of the profile, and GPUs of the model, that an execution wants."""
    for gpu in gpus:
        assert gpu.mig == need.mig, f"{whose} asked for {need.mig or 'whole GPUs'} and has {gpu.mig or 'a whole one'}"
        assert (need.gpu_model or "").lower() in gpu.model.lower(), f"{whose} asked for {need.gpu_model}, has {gpu}"
