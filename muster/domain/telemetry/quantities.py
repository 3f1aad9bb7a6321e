"""Quantities: what is plotted of a rank, a GPU or a node, out of its samples."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.sample import GpuUse, Sample


class Quantity(StrEnum):
    """Something that is used, and of which samples tell."""

    BUSY = "busy"  #: part of the time in which something ran on the GPUs, from 0 to 1; their mean
    GPU_MEMORY = "gpu_memory"  #: bytes that the GPUs hold, in all
    WATTS = "watts"  #: what the GPUs draw, in all
    CELSIUS = "celsius"  #: the hottest GPU
    CLOCK_MHZ = "clock_mhz"  #: the clock of the GPUs' processors, their mean
    CPUS = "cpus"  #: CPUs that were busy
    MEMORY = "memory"  #: bytes
    READ_RATE = "read_rate"  #: bytes a second from disks
    WRITE_RATE = "write_rate"  #: bytes a second to disks
    RECEIVE_RATE = "receive_rate"  #: bytes a second from networks, of nodes alone
    SEND_RATE = "send_rate"  #: bytes a second to networks, of nodes alone
    PROCESSES = "processes"  #: how many there are, of ranks alone


Amounts = Mapping[Quantity, float]
"""How much of each quantity; what nobody tells is left out."""


def amounts_of_rank(sample: Sample, execution: ExecutionId, gpus: Collection[GpuUuid]) -> Amounts:
    """What an execution that has these GPUs used; nothing where the sample does not tell of it."""
    for each, use in sample.executions:
        if each == execution:
            own = {
                Quantity.CPUS: use.cpus,
                Quantity.MEMORY: use.memory,
                Quantity.READ_RATE: use.read_rate,
                Quantity.WRITE_RATE: use.write_rate,
                Quantity.PROCESSES: use.processes,
            }
            return _told(own | _of_gpus([seen for gpu, seen in sample.gpus if gpu in gpus]))
    return {}


def amounts_of_node(sample: Sample) -> Amounts:
    """What a node used as a whole, with all its GPUs."""
    host = sample.host
    own: dict[Quantity, float | None] = {
        Quantity.CPUS: host.cpus,
        Quantity.MEMORY: host.memory,
        Quantity.READ_RATE: host.read_rate,
        Quantity.WRITE_RATE: host.write_rate,
        Quantity.RECEIVE_RATE: host.receive_rate,
        Quantity.SEND_RATE: host.send_rate,
    }
    return _told(own | _of_gpus([use for _, use in sample.gpus]))


def amounts_of_gpu(sample: Sample, gpu: GpuUuid) -> Amounts:
    """What was seen of one GPU; nothing where the sample does not tell of it."""
    return _told(_of_gpus([use for each, use in sample.gpus if each == gpu]))


def _of_gpus(uses: Sequence[GpuUse]) -> dict[Quantity, float | None]:
    return {
        Quantity.BUSY: _mean([use.busy for use in uses]),
        Quantity.GPU_MEMORY: _sum([use.memory for use in uses]),
        Quantity.WATTS: _sum([use.watts for use in uses]),
        Quantity.CELSIUS: max((use.celsius for use in uses if use.celsius is not None), default=None),
        Quantity.CLOCK_MHZ: _mean([use.clock_mhz for use in uses]),
    }


def _told(amounts: Mapping[Quantity, float | None]) -> Amounts:
    return {quantity: float(amount) for quantity, amount in amounts.items() if amount is not None}


def _sum(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) if told else None


def _mean(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) / len(told) if told else None
