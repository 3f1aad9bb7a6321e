"""Several nodes on one machine, for trying things out: each has an address and a share of ports, CPUs, memory, GPUs."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.gpus.source import GpuFault, GpuReading, GpuSource
from muster.domain.errors import MusterError
from muster.domain.fleet.node import GpuProcess
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.telemetry.sample import GpuUse

MAX_LOCAL_NODES = 250
"""127.0.0.2 … 127.0.0.251."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNode:
    """What tells one node on this machine from another."""

    name: NodeId
    state: Path
    address: str
    ports: tuple[int, int]


def local_nodes(count: int, state: Path, ports: tuple[int, int]) -> Iterator[LocalNode]:
    """Nodes `local-1` … with a loopback address and a part of the port range each.

    The parts do not overlap, since user code often binds its port on every address of the machine.
    """
    first, last = ports
    share = (last - first + 1) // max(1, count)
    if not 1 <= count <= MAX_LOCAL_NODES or share < 1:
        raise MusterError(f"cannot be {count} local nodes: there can be {MAX_LOCAL_NODES}, with at least a port each")
    for number in range(count):
        name = NodeId(f"local-{number + 1}")
        begin = first + number * share
        address = f"127.0.0.{number + 2}"
        yield LocalNode(name=name, state=state / name, address=address, ports=(begin, begin + share - 1))


def share_of(total: int, number: int, count: int) -> int:
    """Part of a total that node `number` of `count` gets: the parts add up to the total, but none is less than 1."""
    return max(1, total // count + (number < total % count))


class ShareOfGpus:
    """Every `count`-th GPU of the machine: no GPU belongs to two nodes."""

    def __init__(self, source: GpuSource, number: int, count: int) -> None:
        self._source = source
        self._number = number
        self._count = count

    async def read(self) -> GpuReading:
        """The GPUs of this share."""
        reading = await self._source.read()
        mine = tuple(gpu for gpu in reading.gpus if gpu.index % self._count == self._number)
        return replace(reading, gpus=mine)

    async def faults(self) -> AsyncIterator[GpuFault]:
        """Faults of every GPU: they are for the log, and for looking again."""
        async for fault in self._source.faults():
            yield fault

    async def use(self) -> Mapping[GpuUuid, GpuUse]:
        """What is seen of the GPUs of the whole machine, of which the node knows its own."""
        return await self._source.use()

    async def processes(self) -> Mapping[GpuUuid, Sequence[GpuProcess]]:
        """The processes on the GPUs of the whole machine."""
        return await self._source.processes()

    async def catch_up(self) -> None:
        """Wait until every fault was heard."""
        await self._source.catch_up()

    async def close(self) -> None:
        """Let go of the source."""
        await self._source.close()
