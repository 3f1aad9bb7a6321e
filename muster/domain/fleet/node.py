"""A machine as its agent reports it, and as a client sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from muster.domain.ids import ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.placing.mig import thousandths
from muster.domain.jobs.placing.portion import GpuShare
from muster.domain.jobs.placing.taint import NodeTaint

OWN_LABELS = "local/"
"""The beginning of names of labels that an agent says of its own node; nobody else gives a label such a name."""


def own_labels(said: Mapping[str, str]) -> dict[str, str]:
    """Labels that an agent says of its own node, under names that tell so."""
    return {name if name.startswith(OWN_LABELS) else OWN_LABELS + name: value for name, value in said.items()}


def relabelled(labels: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The labels of a node when a token or an operator has given it these, in place of those given before."""
    return {**{name: value for name, value in labels.items() if name.startswith(OWN_LABELS)}, **given}


class NodeState(StrEnum):
    """How far the coordinator believes in a node."""

    READY = "ready"  #: its lease is valid
    UNREACHABLE = "unreachable"  #: silent past its lease; executions go on, nothing new is placed
    LOST = "lost"  #: silent past `lost_after`; its executions count as lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """An operator wants nothing new placed on a node."""

    since: datetime
    reason: str = ""
    """Why, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that has a context on a GPU (host pid)."""

    pid: int
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU; what the driver does not tell is None."""

    uuid: GpuUuid
    index: int
    model: str
    memory: int
    """Bytes."""
    compute_capability: str | None = None
    pci_bus_id: str | None = None
    numa_node: int | None = None
    nvlink_peers: tuple[GpuUuid, ...] = ()
    mig_enabled: bool | None = None
    mig: str | None = None
    """The profile of a MIG device, like `1g.10gb`; None: it is a whole GPU."""
    problems: tuple[str, ...] = ()
    """Why nothing is placed on it; empty for a healthy GPU."""
    processes: tuple[GpuProcess, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether executions may be placed on it."""
        return not self.problems

    @property
    def thousandths(self) -> int:
        """How much of a whole GPU it is."""
        return 1000 if self.mig is None else thousandths(self.mig)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOffer:
    """A runtime that works on the node, or why it does not."""

    kind: RuntimeKind
    version: str = ""
    gpus: bool = True
    """Whether it can hand GPUs to executions."""
    problem: str | None = None
    """None: it works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What a node has."""

    cpus: int
    memory: int
    """Bytes of main memory."""
    disk_total: int = 0
    """Bytes on the file system of the agent's state directory."""
    disk_free: int = 0
    kernel: str = ""
    os: str = ""
    architecture: str = ""
    addresses: tuple[str, ...] = ()
    """Every address of the node that is not loopback or link-local; for information."""
    gpus: tuple[Gpu, ...] = ()
    gpu_driver: str | None = None
    cuda: str | None = None
    """Highest CUDA version that the driver supports, like `12.8`."""
    gpu_problem: str | None = None
    """Why GPUs could not be read, where a driver is there but does not answer."""
    runtimes: tuple[RuntimeOffer, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels by name: the join token's and operators'; what an agent says of its own node is below `local/`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node and what of it is given away."""

    name: NodeId
    state: NodeState
    address: str
    inventory: Inventory
    executions: tuple[ExecutionId, ...] = ()
    """Executions that hold resources on it."""
    gpus_taken: tuple[GpuUuid, ...] = ()
    """GPUs that are given whole."""
    gpus_shared: Mapping[GpuUuid, GpuShare] = field(default_factory=dict)
    """GPUs of which executions have portions, and how much of each is given."""
    cpu_millis_taken: int = 0
    memory_taken: int = 0
    agent_version: str = ""
    last_seen_at: datetime | None = None
    """None: not since the coordinator started."""
    joined_at: datetime | None = None
    cordon: Cordon | None = None
    """Nothing new is placed on it; None: it takes jobs."""
    taints: tuple[NodeTaint, ...] = ()
    """What keeps jobs off it, in the order of keys and effects."""
    pool: str = ""
    """The pool that it is in."""
