"""GPUs of one node: which of them an execution may have, and which of these lie closest together."""

from collections.abc import Iterable, Sequence

from muster.domain.fleet.node import Gpu
from muster.domain.ids import GpuUuid
from muster.domain.jobs.job import Resources


def matching(gpus: Sequence[Gpu], need: Resources) -> list[Gpu]:
    """The GPUs of the kind that is asked for: whole ones, or MIG devices of a profile."""
    if need.gpu_model is None:
        mig = need.mig
        return [gpu for gpu in gpus if gpu.mig == mig]
    return [gpu for gpu in gpus if is_of_kind(gpu.model, gpu.mig, need)]


def is_of_kind(model: str, mig: str | None, need: Resources) -> bool:
    """Whether GPUs of a model, or MIG devices of a profile, are what is asked for."""
    return mig == need.mig and (need.gpu_model is None or need.gpu_model.lower() in model.lower())


def pick(gpus: Sequence[Gpu], count: int) -> tuple[GpuUuid, ...]:
    """The `count` of GPUs by index that are joined best and leave the others joined: out of as few islands as can be.

    The smallest island that holds all of them is taken, so that a job which fits into a broken one breaks no other. If
    none holds them, the largest are taken whole, and what is left comes out of the smallest that holds it.
    """
    if count == 0:
        return ()
    if count == len(gpus):
        return tuple(gpu.uuid for gpu in gpus)
    left = list(gpus)
    chosen: list[Gpu] = []
    while len(chosen) + len(left) > count:
        parts, lacking = islands(left), count - len(chosen)
        holding = [part for part in parts if len(part) >= lacking]
        if holding:
            left = _closest(min(holding, key=len), lacking)
            break
        largest = max(parts, key=len)
        chosen += largest
        left = [gpu for gpu in left if gpu not in largest]
    return tuple(gpu.uuid for gpu in sorted(chosen + left, key=lambda gpu: gpu.index))


def islands(gpus: Iterable[Gpu]) -> list[list[Gpu]]:
    """The GPUs by islands, each by index: what NVLink joins, directly or by others; else what is on one NUMA node."""
    found: list[list[Gpu]] = []
    unlinked: dict[int | None, list[Gpu]] = {}
    left = {gpu.uuid: gpu for gpu in sorted(gpus, key=lambda gpu: gpu.index)}
    while left:
        first = left.pop(next(iter(left)))
        island, edge = [first], [first]
        while edge and left:
            joined = [left.pop(peer) for peer in edge.pop().nvlink_peers if peer in left]
            island += joined
            edge += joined
        if len(island) > 1:
            found.append(sorted(island, key=lambda gpu: gpu.index))
        elif first.numa_node in unlinked:
            unlinked[first.numa_node].append(first)
        else:
            unlinked[first.numa_node] = island
            found.append(island)
    return found


def _closest(island: Sequence[Gpu], count: int) -> list[Gpu]:
    """The neighbours in an island that are joined best: by NVLink, then by NUMA node; the first such by index."""
    ordered = sorted(island, key=lambda gpu: (gpu.numa_node or 0, gpu.index))
    if not any(gpu.nvlink_peers for gpu in island):
        return ordered[:count]  # what nothing joins is on one NUMA node, and any of it is as good
    windows = (ordered[start : start + count] for start in range(len(ordered) - count + 1))
    return min(windows, key=_distance)


def _distance(window: Sequence[Gpu]) -> tuple[int, int]:
    uuids = {gpu.uuid for gpu in window}
    unlinked = sum(len(uuids) - 1 - len(uuids.intersection(gpu.nvlink_peers)) for gpu in window)
    return (unlinked, len({gpu.numa_node for gpu in window}))
