"""What is new about what a node has, in words for people.

How much of it is free or in use is no news. Addresses are none, as networks of containers come and go with jobs, nor
are sizes of disks, as some file systems share theirs with others.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from coordinator.core.turn.notices import notice_node
from coordinator.core.turn.turn import Turn
from muster.domain.event import NodeEventKind
from muster.domain.fleet.node import Gpu, Inventory, RuntimeOffer
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.quantity import format_memory

_PLAIN = {
    "CPUs": attrgetter("cpus"),
    "kernel": attrgetter("kernel"),
    "system": attrgetter("os"),
    "architecture": attrgetter("architecture"),
    "GPU driver": attrgetter("gpu_driver"),
    "CUDA": attrgetter("cuda"),
    "trouble with reading GPUs": attrgetter("gpu_problem"),
}
"""Facts that are told as they are, by what people call them."""


def notice_news(turn: Turn, node: NodeId, before: Inventory | None, after: Inventory) -> None:
    """Note how the inventory of a node differs from the one before; of a first one only GPUs with problems are news."""
    if changes := [] if before is None else list(_changes(before, after)):
        notice_node(turn, node, NodeEventKind.INVENTORY_CHANGED, "; ".join(changes))
    known = {gpu.uuid: gpu for gpu in before.gpus} if before is not None else {}
    if faults := [fault for gpu in after.gpus if (fault := _fault(known.get(gpu.uuid), gpu))]:
        notice_node(turn, node, NodeEventKind.GPU_FAULT, "; ".join(faults))
    if well := [_name(gpu) for gpu in after.gpus if gpu.usable and _was_unusable(known, gpu)]:
        notice_node(turn, node, NodeEventKind.GPU_BACK, ", ".join(well))


def _changes(before: Inventory, after: Inventory) -> Iterator[str]:
    for name, fact in _PLAIN.items():
        if fact(before) != fact(after):
            yield _change(name, fact(before), fact(after))
    if before.memory != after.memory:
        yield _change("memory", format_memory(before.memory), format_memory(after.memory))
    if _kinds(before.gpus) != _kinds(after.gpus):
        yield (
            _change("GPUs", len(before.gpus), len(after.gpus)) if len(before.gpus) != len(after.gpus) else "other GPUs"
        )
    runtimes, former = ({offer.kind: offer for offer in each.runtimes} for each in (after, before))
    for kind in sorted(runtimes.keys() | former.keys()):
        if (was := _offered(former.get(kind))) != (now := _offered(runtimes.get(kind))):
            yield _change(f"runtime {kind}", was, now)
    yield from _label_changes(before.labels, after.labels)


def _label_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield _change(f"label {name}", before.get(name), after.get(name))


def _change(name: str, before: object, after: object) -> str:
    return f"{name}: {_told(before)} before, {_told(after)} now"


def _told(fact: object) -> str:
    return "none" if fact is None or fact == "" else str(fact)


def _offered(offer: RuntimeOffer | None) -> str:
    if offer is None:
        return ""
    state = f"does not work ({offer.problem})" if offer.problem else f"works {offer.version}".rstrip()
    return state if offer.gpus or offer.problem else f"{state} without GPUs"


def _kinds(gpus: Sequence[Gpu]) -> set[tuple[GpuUuid, str]]:
    return {(gpu.uuid, gpu.model) for gpu in gpus}


def _fault(before: Gpu | None, gpu: Gpu) -> str:
    """What is wrong with a GPU that was not before; empty: nothing."""
    known = () if before is None else before.problems
    new = [problem for problem in gpu.problems if problem not in known]
    return f"{_name(gpu)}: {', '.join(new)}" if new else ""


def _was_unusable(known: Mapping[GpuUuid, Gpu], gpu: Gpu) -> bool:
    return gpu.uuid in known and not known[gpu.uuid].usable


def _name(gpu: Gpu) -> str:
    return f"GPU {gpu.index}"
