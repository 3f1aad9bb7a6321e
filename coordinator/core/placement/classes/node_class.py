"""Nodes with the same traits: a level for each number of free GPUs, and in it bins by free CPUs and memory."""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.classes.group import NodeGroup
from coordinator.core.placement.devices import is_of_kind
from muster.domain.jobs.job import Resources

FreeGpus = tuple[tuple[str, str, int], ...]
"""Free GPUs by model and MIG profile; an empty one stands for whole GPUs."""
FreeKey = tuple[FreeGpus, bool]
"""Free GPUs by model, and whether nothing is held on the node."""
BinLevels = tuple[int, int]
"""Powers of two of free CPUs and of free GiB of memory."""


@dataclass(frozen=True, slots=True)
class Span:
    """Amounts between two bounds, both included."""

    least: int
    most: int


class Bin(NodeGroup):
    """Nodes of one level with about the same free CPUs and memory."""

    __slots__ = ("cpu_millis", "memory")

    def __init__(self, gpus: int, levels: BinLevels) -> None:
        super().__init__(gpus)
        self.cpu_millis, self.memory = spans_of(levels)


class FreeLevel(NodeGroup):
    """Nodes of one class with the same free GPUs, all of them and by bins."""

    __slots__ = ("_floor", "_matching", "bins", "free", "idle")

    def __init__(self, free: FreeGpus, *, idle: bool) -> None:
        super().__init__(sum(count for *_, count in free))
        self.free = free
        self.idle = idle
        """Whether nothing is held on each of them."""
        self.bins: dict[BinLevels, Bin] = {}
        self._floor: BinLevels | None = None
        self._matching: dict[tuple[str | None, str | None], int] = {}

    @property
    def floor(self) -> BinLevels:
        """The powers of two of CPUs and memory that each of its nodes has free at least; those of no bin, perhaps."""
        if self._floor is None:
            self._floor = (min(cpus for cpus, _ in self.bins), min(memory for _, memory in self.bins))
        return self._floor

    def matching(self, need: Resources) -> int:
        """How many of the free GPUs are of the kind that is asked for."""
        kind = (need.gpu_model, need.mig)
        found = self._matching.get(kind)
        if found is None:
            found = sum(count for model, mig, count in self.free if is_of_kind(model, mig or None, need))
            self._matching[kind] = found
        return found

    def enter(self, capacity: Capacity) -> None:
        """Have a node in its bin."""
        self.add(capacity)
        self._put_into_bin(capacity)

    def leave(self, capacity: Capacity) -> None:
        """Have a node in no bin any more."""
        self.remove(capacity)
        self._take_out_of_bin(capacity)

    def move(self, before: Capacity, after: Capacity) -> None:
        """Have a node in the bin of what it has now."""
        self.change(before, after)
        if (levels := bin_levels(after)) == bin_levels(before):
            self.bins[levels].change(before, after)
        else:
            self._take_out_of_bin(before)
            self._put_into_bin(after)

    def _put_into_bin(self, capacity: Capacity) -> None:
        levels = bin_levels(capacity)
        found = self.bins.get(levels)
        if found is None:
            found = self.bins[levels] = Bin(self.gpus, levels)
            self._floor = None
        found.add(capacity)

    def _take_out_of_bin(self, capacity: Capacity) -> None:
        levels = bin_levels(capacity)
        found = self.bins[levels]
        found.remove(capacity)
        if not found.keys:
            del self.bins[levels]
            self._floor = None


@dataclass(slots=True)
class NodeClass:
    """Nodes that have the same traits, by free GPUs and then by the levels of CPUs and memory."""

    sample: Capacity
    """One of them; it has those labels alone that are part of classes."""
    levels: dict[FreeKey, FreeLevel] = field(default_factory=dict)

    def groups_of(self, capacity: Capacity) -> tuple[FreeLevel, Bin]:
        """The level and the bin of a node of this class."""
        level = self.levels[_free_key(capacity)]
        return level, level.bins[bin_levels(capacity)]

    def enter(self, capacity: Capacity) -> bool:
        """Have a node in its level; whether that is a new one."""
        return self._enter(_free_key(capacity), capacity)

    def leave(self, capacity: Capacity) -> bool:
        """Have a node in no level any more; whether its level is gone, too."""
        return self._leave(_free_key(capacity), capacity)

    def move(self, before: Capacity, after: Capacity) -> bool:
        """Have a node in the level of what it has now; whether there are other levels than before."""
        old, new = _free_key(before), _free_key(after)
        if old == new:
            self.levels[new].move(before, after)
            return False
        is_gone = self._leave(old, before)
        return self._enter(new, after) or is_gone

    def _enter(self, key: FreeKey, capacity: Capacity) -> bool:
        level = self.levels.get(key)
        is_new = level is None
        if level is None:
            free, idle = key
            level = self.levels[key] = FreeLevel(free, idle=idle)
        level.enter(capacity)
        return is_new

    def _leave(self, key: FreeKey, capacity: Capacity) -> bool:
        level = self.levels[key]
        level.leave(capacity)
        if level.keys:
            return False
        del self.levels[key]
        return True


def bin_levels(capacity: Capacity) -> BinLevels:
    """The powers of two of what a node has free of CPUs and memory."""
    return (max(0, capacity.cpu_millis // 1000).bit_length(), max(0, capacity.memory >> 30).bit_length())


@lru_cache(maxsize=4096)
def spans_of(levels: BinLevels) -> tuple[Span, Span]:
    """What nodes have free of CPUs, in thousandths, and of bytes of memory."""
    cpus, memory = levels
    return _span(cpus, 1000), _span(memory, 1 << 30)


def _free_key(capacity: Capacity) -> FreeKey:
    return (_free_gpus(capacity), capacity.idle)


def _free_gpus(capacity: Capacity) -> FreeGpus:
    if not capacity.gpus:
        return ()
    first = capacity.gpus[0]
    if all([gpu.model == first.model and gpu.mig == first.mig for gpu in capacity.gpus]):  # noqa: C419 - a list is faster
        return ((first.model, first.mig or "", len(capacity.gpus)),)
    kinds = Counter((gpu.model, gpu.mig or "") for gpu in capacity.gpus)
    return tuple((model, mig, count) for (model, mig), count in sorted(kinds.items()))


def _span(level: int, unit: int) -> Span:
    """Amounts of a level: below one unit for level 0, then from one power of two to the next."""
    return Span((1 << level >> 1) * unit, (1 << level) * unit - 1)
