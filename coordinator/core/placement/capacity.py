"""What a node has to give, and where it stands among the others."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from coordinator.core.placement.portions.shared_gpu import GpuSizes, SharedGpus, unshared
from muster.domain.fleet.node import Gpu, RuntimeOffer
from muster.domain.fleet.pool import DEFAULT_POOL
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.portion import Portion
from muster.domain.jobs.placing.taint import Taint
from muster.domain.jobs.placing.topology import DEFAULT_LEVELS
from muster.domain.natural_order import natural


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a node has to give, free or in all."""

    node: NodeId
    gpus: tuple[Gpu, ...] = ()
    """GPUs that can be used and of which nothing is given, by index."""
    shared: SharedGpus = ()
    """GPUs that can be used and of which portions are given, by index."""
    gpu_sizes: GpuSizes = ()
    """The whole GPUs that it has in all; nothing is known of the size of others."""
    cpu_millis: int = 0
    memory: int = 0
    disk: int = 0
    """Bytes of disk. No bin depends on them: they are looked at node by node."""
    disk_left: int = 0
    """Bytes of disk that were free when the node last told, whoever has the others."""
    runtimes: tuple[RuntimeOffer, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()
    """Fixed port numbers that are taken. No bin depends on them: they are looked at node by node."""
    features: frozenset[str] = frozenset()
    """Words for what its agent can."""
    pool: str = DEFAULT_POOL
    levels: tuple[str, ...] = DEFAULT_LEVELS
    """Labels that say where a node of its pool is, the coarsest first."""
    taints: tuple[Taint, ...] = ()
    idle: bool = True
    """Whether nothing is held on it."""
    problem: str | None = None
    """Why nothing can be placed on it at all."""

    def exceeds(self, before: "Capacity") -> bool:
        """Whether something may fit here that did not fit when the node had the capacity of before."""
        if self.problem is not None:
            return False
        return (
            before.problem is not None
            or self.cpu_millis > before.cpu_millis
            or self.memory > before.memory
            or self.disk >> 30 > before.disk >> 30
            or not before.ports <= self.ports
            or (self.idle and not before.idle)
            or self._has_other_gpus(before)
            or (bool(self.shared) and self._shares_more(before))
            or not self.is_like(before)
        )

    def _has_other_gpus(self, before: "Capacity") -> bool:
        """Whether some free GPU was not free before, or is other than it was."""
        known = {gpu.uuid: gpu for gpu in before.gpus}
        return any((had := known.get(gpu.uuid)) is not gpu and had != gpu for gpu in self.gpus)

    def _shares_more(self, before: "Capacity") -> bool:
        """Whether more is left of some shared GPU than before, when it may have been whole."""
        whole = {gpu.uuid: unshared(gpu) for gpu in before.gpus}
        known = whole | {each.gpu.uuid: each for each in before.shared}
        return any(each.gpu.uuid not in known or each.has_more(known[each.gpu.uuid]) for each in self.shared)

    def shares(self, portion: Portion) -> bool:
        """Whether some shared GPU holds a portion, of whatever model it is."""
        return any(each.holds(portion) for each in self.shared)

    def is_like(self, other: "Capacity") -> bool:
        """Whether a node has the same traits: all that stays as it is while a node runs."""
        return (
            (self.labels is other.labels or self.labels == other.labels)
            and self.runtimes == other.runtimes
            and self.features == other.features
            and self.pool == other.pool
            and self.levels == other.levels
            and self.taints == other.taints
            and self.gpu_sizes == other.gpu_sizes
        )

    def with_labels(self, names: Collection[str]) -> "Capacity":
        """The same with these of its labels alone; `dataclasses.replace` takes twice as long."""
        return Capacity(
            node=self.node,
            gpus=self.gpus,
            shared=self.shared,
            gpu_sizes=self.gpu_sizes,
            cpu_millis=self.cpu_millis,
            memory=self.memory,
            disk=self.disk,
            disk_left=self.disk_left,
            runtimes=self.runtimes,
            labels={name: self.labels[name] for name in names if name in self.labels},
            ports=self.ports,
            features=self.features,
            pool=self.pool,
            levels=self.levels,
            taints=self.taints,
            idle=self.idle,
            problem=self.problem,
        )


Key = tuple[str, NodeId]
"""Sorts nodes in natural order of their names."""


def key_of(node: NodeId) -> Key:
    """Where a node stands in natural order."""
    return (natural(node), node)
