"""GPUs that are given in portions, and what is left of each: thousandths and bytes, of which either bound counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.domain.fleet.node import Gpu
from muster.domain.ids import GpuUuid
from muster.domain.jobs.placing.portion import WHOLE_GPU, Portion

GpuSizes = tuple[tuple[str, int], ...]
"""The whole GPUs of a node by model and whole GiB of memory, each kind once."""
GivenPortion = tuple[Gpu, Portion]
"""A portion, and the GPU of which it is given or kept."""


@dataclass(frozen=True, slots=True)
class SharedGpu:
    """A GPU of which portions are given; it is never given whole."""

    gpu: Gpu
    thousandths: int
    """What is left; below zero where more is kept of it than there is."""
    memory: int
    """Bytes that are left."""

    def holds(self, portion: Portion) -> bool:
        """Whether one more portion can be given of it."""
        share = portion.of(self.gpu.memory)
        return share.thousandths <= self.thousandths and share.memory <= self.memory

    def without(self, portion: Portion) -> "SharedGpu":
        """The GPU with one more portion given."""
        share = portion.of(self.gpu.memory)
        return SharedGpu(self.gpu, self.thousandths - share.thousandths, self.memory - share.memory)

    def has_more(self, other: "SharedGpu") -> bool:
        """Whether more is left of it in some way."""
        return self.thousandths > other.thousandths or self.memory > other.memory

    def common(self, other: "SharedGpu") -> "SharedGpu":
        """The GPU with what is left both of it and of the other."""
        return replace(
            self, thousandths=min(self.thousandths, other.thousandths), memory=min(self.memory, other.memory)
        )


SharedGpus = tuple[SharedGpu, ...]


def unshared(gpu: Gpu) -> SharedGpu:
    """A GPU of which nothing is given yet."""
    return SharedGpu(gpu, WHOLE_GPU, gpu.memory)


def shared_gpus(gpus: Iterable[Gpu], given: Mapping[GpuUuid, Mapping[Portion, int]]) -> SharedGpus:
    """What is left of those GPUs of which portions are given: so many of each, by GPU."""
    found = []
    for gpu in gpus:
        if portions := given.get(gpu.uuid):
            left = unshared(gpu)
            for portion, count in portions.items():
                for _ in range(count):
                    left = left.without(portion)
            found.append(left)
    return tuple(found)


def beside(gpus: Sequence[Gpu], shared: SharedGpus, kept: Iterable[GivenPortion]) -> tuple[tuple[Gpu, ...], SharedGpus]:
    """What is left of whole and of shared GPUs beside portions that are kept; of those alone that are among them."""
    whole = {gpu.uuid: gpu for gpu in gpus}
    left = {each.gpu.uuid: each for each in shared}
    for gpu, portion in kept:
        if (opened := whole.pop(gpu.uuid, None)) is not None:
            left[gpu.uuid] = unshared(opened)
        if gpu.uuid in left:
            left[gpu.uuid] = left[gpu.uuid].without(portion)
    return tuple(whole.values()), tuple(sorted(left.values(), key=lambda each: each.gpu.index))


def hold_all(gpus: Sequence[Gpu], shared: SharedGpus, kept: Iterable[GivenPortion]) -> bool:
    """Whether all these portions can be given of whole and of shared GPUs."""
    portions = tuple(kept)
    if not portions:
        return True
    there = {gpu.uuid for gpu in gpus} | {each.gpu.uuid for each in shared}
    _, left = beside(gpus, shared, portions)
    of = {gpu.uuid for gpu, _ in portions}
    return of <= there and all(each.thousandths >= 0 and each.memory >= 0 for each in left if each.gpu.uuid in of)


def common_shares(one: Sequence[Gpu], shared: SharedGpus, other: Sequence[Gpu], others: SharedGpus) -> SharedGpus:
    """What two views of the GPUs of a node both have of those that one of them shares."""
    if not shared and not others:
        return ()
    left = {each.gpu.uuid: each for each in others} | {gpu.uuid: unshared(gpu) for gpu in other}
    whole = (unshared(gpu) for gpu in one if any(gpu.uuid == each.gpu.uuid for each in others))
    found = [each.common(left[each.gpu.uuid]) for each in (*shared, *whole) if each.gpu.uuid in left]
    return tuple(sorted(found, key=lambda each: each.gpu.index))
