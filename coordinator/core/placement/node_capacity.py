"""The capacity of a node: in total, used by executions, and free."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.portions.shared_gpu import GpuSizes, shared_gpus
from coordinator.core.records import Node
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.fleet.node import Gpu
from muster.domain.fleet.pool import Pool, levels_of, pool_of
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.job import Resources
from muster.domain.jobs.placing.portion import WHOLE_GPU, GpuShare, Portion


@dataclass(slots=True)
class UsedCapacity:
    """Capacity of a node that executions have been given."""

    gpus: set[GpuUuid] = field(default_factory=set)
    """GPUs that are given whole."""
    portions: dict[GpuUuid, Counter[Portion]] = field(default_factory=dict)
    """Portions that are given, by GPU."""
    cpu_millis: int = 0
    memory: int = 0
    disk: int = 0
    executions: set[ExecutionId] = field(default_factory=set)

    ports: Counter[int] = field(default_factory=Counter)
    """Fixed port numbers, and how many executions have each."""
    exclusive: bool = False
    """Whether those that hold something are of a job that has its nodes for itself."""

    def copy(self) -> "UsedCapacity":
        """The same, to be changed by itself."""
        portions = {gpu: given.copy() for gpu, given in self.portions.items()}
        return replace(
            self, gpus=set(self.gpus), portions=portions, executions=set(self.executions), ports=self.ports.copy()
        )

    def take(
        self,
        execution: ExecutionId,
        resources: Resources,
        gpus: Collection[GpuUuid],
        ports: Collection[int],
        *,
        exclusive: bool = False,
    ) -> None:
        """Give an execution what it asks for; `exclusive`: with all else that the node has."""
        self.exclusive = exclusive
        self.ports.update(ports)
        self.executions.add(execution)
        if (portion := resources.portion) is None:
            self.gpus.update(gpus)
        else:
            for gpu in gpus:
                self.portions.setdefault(gpu, Counter())[portion] += 1
        self.cpu_millis += resources.cpu_millis
        self.memory += resources.memory or 0
        self.disk += resources.disk or 0

    def give_back(
        self, execution: ExecutionId, resources: Resources, gpus: Collection[GpuUuid], ports: Collection[int]
    ) -> None:
        """Take back what an execution had."""
        for port in ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        self.executions.discard(execution)
        self.exclusive = self.exclusive and bool(self.executions)
        if (portion := resources.portion) is None:
            self.gpus.difference_update(gpus)
        else:
            for gpu in gpus:
                self._give_back_portion(gpu, portion)
        self.cpu_millis -= resources.cpu_millis
        self.memory -= resources.memory or 0
        self.disk -= resources.disk or 0

    def _give_back_portion(self, gpu: GpuUuid, portion: Portion) -> None:
        given = self.portions[gpu]
        given[portion] -= 1
        if not given[portion]:
            del given[portion]
        if not given:
            del self.portions[gpu]

    def shares(self, gpus: Iterable[Gpu]) -> Mapping[GpuUuid, GpuShare]:
        """How much is given of each of these GPUs of which portions are."""
        return {
            each.gpu.uuid: GpuShare(WHOLE_GPU - each.thousandths, each.gpu.memory - each.memory)
            for each in shared_gpus(gpus, self.portions)
        }

    @property
    def thousandths_of_gpus(self) -> int:
        """What portions of GPUs count that are given."""
        counted = (portion.thousandths * count for given in self.portions.values() for portion, count in given.items())
        return sum(counted)


def total_capacity(node: Node, pools: Iterable[Pool] = ()) -> Capacity:
    """Capacity of a node as if nothing ran there and every GPU were well; it is in one of these pools or none."""
    inventory, pools = node.inventory, tuple(pools)
    pool = pool_of(inventory.labels, pools)
    return Capacity(
        node=node.name,
        gpus=inventory.gpus,
        gpu_sizes=_sizes(inventory.gpus),
        cpu_millis=inventory.cpus * 1000,
        memory=inventory.memory,
        disk=inventory.disk_total,
        disk_left=inventory.disk_free,
        runtimes=inventory.runtimes,
        labels=inventory.labels,
        features=node.features & ALL_FEATURES,
        pool=pool,
        levels=levels_of(pool, pools),
        taints=tuple(each.taint for each in node.taints),
    )


def free_capacity(total: Capacity, used: UsedCapacity, problem: str | None) -> Capacity:
    """Capacity that is left beside what is used; a broken GPU counts as used.

    Of the disk only what is free now counts, as others than executions fill it, too. What these were promised counts as
    used, also where they have written it already: nobody can tell how much of it they have.
    """
    portions = used.portions
    taken = used.gpus.union(portions) if portions else used.gpus
    return replace(
        total,
        gpus=tuple(gpu for gpu in total.gpus if gpu.usable and gpu.uuid not in taken),
        shared=shared_gpus((gpu for gpu in total.gpus if gpu.usable), portions) if portions else (),
        cpu_millis=total.cpu_millis - used.cpu_millis,
        memory=total.memory - used.memory,
        disk=total.disk_left - used.disk,
        ports=frozenset(used.ports),
        idle=not used.executions,
        problem=problem or ("belongs to a job that has its nodes for itself" if used.exclusive else None),
    )


def _sizes(gpus: Iterable[Gpu]) -> GpuSizes:
    return tuple(sorted({(gpu.model, gpu.memory >> 30) for gpu in gpus if gpu.mig is None}))
