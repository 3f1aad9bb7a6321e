"""GPUs of one node: which of them an execution may have, and which of these lie closest together."""

from collections.abc import Sequence

from muster.domain.fleet.node import Gpu
from muster.domain.ids import GpuUuid
from muster.domain.jobs.job import Resources


def matching(gpus: Sequence[Gpu], need: Resources) -> list[Gpu]:
    """The GPUs of the model that is asked for."""
    if need.gpu_model is None:
        return list(gpus)
    wanted = need.gpu_model.lower()
    return [gpu for gpu in gpus if wanted in gpu.model.lower()]


def pick(gpus: Sequence[Gpu], count: int) -> tuple[GpuUuid, ...]:
    """The `count` neighbours that are joined best: by NVLink, then by NUMA node; the first such by index."""
    if count == 0:
        return ()
    ordered = sorted(gpus, key=lambda gpu: (gpu.numa_node or 0, gpu.index))
    windows = (ordered[start : start + count] for start in range(len(ordered) - count + 1))
    best = min(windows, key=_distance)
    return tuple(gpu.uuid for gpu in sorted(best, key=lambda gpu: gpu.index))


def _distance(window: Sequence[Gpu]) -> tuple[int, int]:
    uuids = {gpu.uuid for gpu in window}
    unlinked = sum(len(uuids) - 1 - len(uuids.intersection(gpu.nvlink_peers)) for gpu in window)
    return (unlinked, len({gpu.numa_node for gpu in window}))
