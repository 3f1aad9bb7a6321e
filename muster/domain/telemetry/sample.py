"""Samples: what a node, its GPUs and its executions used within one span of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from muster.domain.ids import ExecutionId, GpuUuid, NodeId

SAMPLED_EVERY = timedelta(seconds=2)
"""How often a node looks at what is used."""
SAMPLE_SPAN = timedelta(seconds=10)
"""The time of which one sample tells, when nothing makes it longer."""
MAX_SAMPLE = 64 * 1024
"""Bytes of a sample as it travels."""
MAX_SAMPLED = 1024
"""GPUs, and executions, of one sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """What is seen of a GPU; None: its driver does not tell."""

    busy: float | None = None
    """The part of the time in which something ran on it, from 0 to 1; the mean."""
    busy_most: float | None = None
    """The greatest of the looks within the span."""
    memory: int | None = None
    """Bytes that are held."""
    watts: float | None = None
    celsius: int | None = None
    clock_mhz: int | None = None
    """The clock of its processors."""
    throttled: bool = False
    """Whether heat or a limit of power slowed it down at some time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionUse:
    """What an execution used; None: not known."""

    cpus: float | None = None
    """CPUs that it kept busy, the mean."""
    cpus_most: float | None = None
    memory: int | None = None
    """Bytes, without pages of files that can go at any time."""
    read_rate: float | None = None
    """Bytes a second that it read from disks."""
    write_rate: float | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """What a node used as a whole; None: not known."""

    cpus: float = 0
    """CPUs that were busy, the mean."""
    memory: int = 0
    """Bytes that are not available to new programs."""
    memory_total: int = 0
    read_rate: float | None = None
    """Bytes a second from disks."""
    write_rate: float | None = None
    receive_rate: float | None = None
    """Bytes a second from all networks."""
    send_rate: float | None = None
    stalled: tuple[float | None, float | None, float | None] = (None, None, None)
    """The part of the time in which something waited for CPU, memory and disks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a node used within a span."""

    at: datetime
    """The end of the span, by the clock of the node."""
    span: timedelta
    host: HostUse
    gpus: Sequence[tuple[GpuUuid, GpuUse]] = ()
    """Ordered as in the inventory."""
    executions: Sequence[tuple[ExecutionId, ExecutionUse]] = ()
    left_out: int = 0
    """Executions that had no room in it."""


class UnreadSample(NamedTuple):
    """The sample of a node as it came, for whoever may see all of it."""

    node: NodeId
    data: bytes


class NodeSample(NamedTuple):
    """The sample of a node."""

    node: NodeId
    sample: Sample
