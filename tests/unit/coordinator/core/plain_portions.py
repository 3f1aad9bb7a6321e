"""Portions of the GPUs of one node, one after the other, as plainly as can be."""

from collections.abc import Sequence

from coordinator.core.placement.devices import pick
from coordinator.core.placement.portions.shared_gpu import SharedGpu
from muster.domain.fleet.node import Gpu
from muster.domain.ids import GpuUuid
from muster.domain.jobs.job import Resources


class PlainShares:
    """What is left of each GPU."""

    def __init__(self, free: Sequence[Gpu], shared: Sequence[SharedGpu]) -> None:
        self.free = {gpu.uuid: gpu for gpu in free}
        self.shared = {each.gpu.uuid: (each.thousandths, each.memory, each.gpu) for each in shared}

    def copy(self, *, without_free: bool = False) -> "PlainShares":
        found = PlainShares((), ())
        found.free, found.shared = {} if without_free else dict(self.free), dict(self.shared)
        return found

    def holding(self, need: Resources) -> list[tuple[int, int, int, GpuUuid]]:
        """Shared GPUs that hold one more portion, the fullest first."""
        return sorted(
            (thousandths, memory, gpu.index, gpu.uuid)
            for thousandths, memory, gpu in self.shared.values()
            if _is_wanted(gpu, need) and _takes(need, gpu)[0] <= thousandths and _takes(need, gpu)[1] <= memory
        )

    def take(self, need: Resources) -> tuple[GpuUuid, ...] | None:
        """GPUs of one more execution; None: there is no room."""
        chosen = [uuid for *_, uuid in self.holding(need)][: need.gpus]
        lacking = need.gpus - len(chosen)
        large = [gpu for gpu in self.free.values() if _is_wanted(gpu, need) and _takes(need, gpu)[0] <= 1000]
        if lacking > len(large):
            return None
        for uuid in pick(large, lacking):
            gpu = self.free.pop(uuid)
            self.shared[uuid] = (1000, gpu.memory, gpu)
            chosen.append(uuid)
        for uuid in chosen:
            thousandths, memory, gpu = self.shared[uuid]
            self.shared[uuid] = (thousandths - _takes(need, gpu)[0], memory - _takes(need, gpu)[1], gpu)
        return tuple(sorted(chosen, key=lambda uuid: self.shared[uuid][2].index))

    def slots(self, need: Resources, most: int) -> int:
        """Executions that find room, up to so many."""
        tried = self.copy()
        return next((count for count in range(most) if tried.take(need) is None), most)


def _is_wanted(gpu: Gpu, need: Resources) -> bool:
    return gpu.mig is None and (need.gpu_model or "").lower() in gpu.model.lower()


def _takes(need: Resources, gpu: Gpu) -> tuple[int, int]:
    """Thousandths and bytes of a GPU."""
    if need.gpu_memory is None:
        assert need.gpu_portion is not None
        return need.gpu_portion, gpu.memory * need.gpu_portion // 1000
    parts, rest = divmod(need.gpu_memory * 1000, gpu.memory)
    return parts + bool(rest), need.gpu_memory
