"""Which GPUs of a node an execution gets portions of, and how many executions find some."""

from collections.abc import Iterable, Sequence

from coordinator.core.placement.devices import is_of_kind, matching, pick
from coordinator.core.placement.portions.shared_gpu import SharedGpu, unshared
from muster.domain.fleet.node import Gpu
from muster.domain.ids import GpuUuid
from muster.domain.jobs.job import Resources
from muster.domain.jobs.placing.portion import Portion


class SharedDraft:
    """GPUs of a node while portions of them are given, the fullest that holds one first."""

    def __init__(self, gpus: Sequence[Gpu], shared: Iterable[SharedGpu]) -> None:
        self.gpus = list(gpus)
        """GPUs of which nothing is given."""
        self.shared = {each.gpu.uuid: each for each in shared}

    def take(self, need: Resources, portion: Portion) -> tuple[GpuUuid, ...]:
        """Give one more execution its portions, each of another GPU; none are given where there are too few GPUs."""
        fullest = self._fullest(need, portion)[: need.gpus]
        lacking = need.gpus - len(fullest)
        chosen = [each.gpu.uuid for each in fullest]
        if lacking:
            whole = [gpu for gpu in matching(self.gpus, need) if unshared(gpu).holds(portion)]
            if len(whole) < lacking:
                return ()
            opened = pick(whole, lacking)
            chosen += opened
            self.shared |= {gpu.uuid: unshared(gpu) for gpu in whole if gpu.uuid in opened}
            self.gpus = [gpu for gpu in self.gpus if gpu.uuid not in opened]
        for uuid in chosen:
            self.shared[uuid] = self.shared[uuid].without(portion)
        return tuple(sorted(chosen, key=lambda uuid: self.shared[uuid].gpu.index))

    def fullest(self, need: Resources, portion: Portion) -> int | None:
        """What is left, in thousandths, of the fullest shared GPU that holds a portion; None: none does."""
        holding = self._fullest(need, portion)
        return holding[0].thousandths if holding else None

    def slots(self, need: Resources, portion: Portion, most: int, *, shared_alone: bool = False) -> int:
        """How many executions find portions, up to so many; `shared_alone`: of GPUs that are shared already."""
        draft = SharedDraft(() if shared_alone else self.gpus, self.shared.values())
        found = 0
        while found < most and draft.take(need, portion):
            found += 1
        return found

    def _fullest(self, need: Resources, portion: Portion) -> list[SharedGpu]:
        holding = (
            each
            for each in self.shared.values()
            if is_of_kind(each.gpu.model, each.gpu.mig, need) and each.holds(portion)
        )
        return sorted(holding, key=lambda each: (each.thousandths, each.memory, each.gpu.index))


def fresh_slots(count: int, need: Resources, portion: Portion, sizes: Iterable[int]) -> tuple[int, int]:
    """How many executions find portions of so many GPUs of which nothing is given: at the least, and at the most.

    `sizes` has the whole GiB of memory of the GPUs that may be among them; none: nothing is known of it.
    """
    if not portion.memory:
        slots = count // need.gpus * portion.fitting(1 << 40)
        return slots, slots
    bounds = [(portion.fitting(gib << 30), portion.fitting((gib + 1 << 30) - 1)) for gib in sizes]
    if not bounds:
        return 0, count * portion.fitting(1 << 60) // need.gpus
    least, most = min(low for low, _ in bounds), max(high for _, high in bounds)
    if least == most:
        return (count // need.gpus * most,) * 2
    return 0, count * most // need.gpus
