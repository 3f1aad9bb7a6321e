"""What user code that runs has for itself, in truth: GPUs, whole or in portions, and fixed ports."""

from collections.abc import Iterable

from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.job import Resources

GPU_MEMORY = 80 << 30
"""Bytes of memory of every GPU."""


class UsedThings:
    """The users of things: each is used whole by one, or in portions by several as far as these go together."""

    def __init__(self) -> None:
        self._whole: dict[str, ExecutionId] = {}
        self._portions: dict[GpuUuid, dict[ExecutionId, tuple[int, int]]] = {}

    def in_the_way(self, need: Resources, gpus: Iterable[GpuUuid], ports: Iterable[str]) -> tuple[str, str] | None:
        """A thing that somebody uses, so that there is too little of it, and who; None: there is none."""
        for thing in (*gpus, *ports):
            if thing in self._whole:
                return thing, self._whole[thing]
        for gpu in gpus:
            used = self._portions.get(gpu, {})
            if used and (need.portion is None or not _go_together([*used.values(), _share(need)])):
                return gpu, ", ".join(sorted(used))
        return None

    def use(self, who: ExecutionId, need: Resources, gpus: Iterable[GpuUuid], ports: Iterable[str]) -> None:
        """Hear that user code has started."""
        self._whole |= dict.fromkeys(ports, who)
        for gpu in gpus:
            if need.portion is None:
                self._whole[gpu] = who
            else:
                self._portions.setdefault(gpu, {})[who] = _share(need)

    def leave(self, who: ExecutionId) -> None:
        """Hear that user code has ended."""
        self._whole = {thing: user for thing, user in self._whole.items() if user != who}
        for used in self._portions.values():
            used.pop(who, None)


def _share(need: Resources) -> tuple[int, int]:
    """Thousandths and bytes of a GPU."""
    if need.gpu_memory is not None:
        return -(-need.gpu_memory * 1000 // GPU_MEMORY), need.gpu_memory
    thousandths = need.gpu_portion or 0
    return thousandths, GPU_MEMORY * thousandths // 1000


def _go_together(shares: Iterable[tuple[int, int]]) -> bool:
    everything = list(shares)
    thousandths, memory = (sum(each[place] for each in everything) for place in (0, 1))
    return thousandths <= 1000 and memory <= GPU_MEMORY
