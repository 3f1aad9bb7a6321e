"""The capacity of a node: in total, used by executions, and free."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from coordinator.core.placement.capacity import Capacity
from coordinator.core.records import Node
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.fleet.pool import Pool, pool_of
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.job import Resources


@dataclass(slots=True)
class UsedCapacity:
    """Capacity of a node that executions have been given."""

    gpus: set[GpuUuid] = field(default_factory=set)
    cpu_millis: int = 0
    memory: int = 0
    executions: set[ExecutionId] = field(default_factory=set)

    ports: Counter[int] = field(default_factory=Counter)
    """Fixed port numbers, and how many executions have each."""
    exclusive: bool = False
    """Whether those that hold something are of a job that has its nodes for itself."""

    def copy(self) -> "UsedCapacity":
        """The same, to be changed by itself."""
        return replace(self, gpus=set(self.gpus), executions=set(self.executions), ports=self.ports.copy())

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
        self.gpus.update(gpus)
        self.cpu_millis += resources.cpu_millis
        self.memory += resources.memory or 0

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
        self.gpus.difference_update(gpus)
        self.cpu_millis -= resources.cpu_millis
        self.memory -= resources.memory or 0


def total_capacity(node: Node, pools: Iterable[Pool] = ()) -> Capacity:
    """Capacity of a node as if nothing ran there and every GPU were well; it is in one of these pools or none."""
    inventory = node.inventory
    return Capacity(
        node=node.name,
        gpus=inventory.gpus,
        cpu_millis=inventory.cpus * 1000,
        memory=inventory.memory,
        runtimes=inventory.runtimes,
        labels=inventory.labels,
        features=node.features & ALL_FEATURES,
        pool=pool_of(inventory.labels, pools),
        taints=tuple(each.taint for each in node.taints),
    )


def free_capacity(total: Capacity, used: UsedCapacity, problem: str | None) -> Capacity:
    """Capacity that is left beside what is used; a broken GPU counts as used."""
    return replace(
        total,
        gpus=tuple(gpu for gpu in total.gpus if gpu.usable and gpu.uuid not in used.gpus),
        cpu_millis=total.cpu_millis - used.cpu_millis,
        memory=total.memory - used.memory,
        ports=frozenset(used.ports),
        idle=not used.executions,
        problem=problem or ("belongs to a job that has its nodes for itself" if used.exclusive else None),
    )
