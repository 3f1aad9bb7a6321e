"""The contract of a source of GPUs; `tests/contract/test_gpu_source.py` holds every source to it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.domain.fleet.node import Gpu, GpuProcess
from muster.domain.ids import GpuUuid
from muster.domain.telemetry.sample import GpuUse

MOST_WAITING = 1000
"""Faults that wait for their listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """The GPUs of a node at one moment."""

    gpus: tuple[Gpu, ...] = ()
    """The GPUs in the driver's order. One that was seen before and is not there any more stays, with a problem."""
    driver: str | None = None
    cuda: str | None = None
    """Highest CUDA version that the driver supports, like `12.8`."""
    problem: str | None = None
    """Why GPUs could not be read, where a driver is there but does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFault:
    """The driver reported an Xid."""

    uuid: GpuUuid
    xid: int
    message: str
    """A sentence for people: `Xid 31: GPU memory page fault`."""
    own: bool
    """Whether it is the GPU's own and ends programs; False: a program's doing, or only a warning."""


class GpuSource(Protocol):
    """Tells the GPUs of one node; never blocks the event loop, and never fails: what is wrong is in the reading."""

    async def read(self) -> GpuReading:
        """Tell the GPUs as they are now, within seconds whatever the driver does.

        A fault that came before is part of it: if it makes a GPU unusable, that GPU has a problem.
        """
        ...

    def faults(self) -> AsyncIterator[GpuFault]:
        """Every Xid since the first reading, also those of the application's making; for one listener.

        Ends when the source is closed.
        """
        ...

    async def use(self) -> Mapping[GpuUuid, GpuUse]:
        """What is seen of each GPU at the moment; without those that do not answer, and without MIG devices."""
        ...

    async def processes(self) -> Mapping[GpuUuid, Sequence[GpuProcess]]:
        """The processes of each GPU at the moment, with their memory; without those that do not answer."""
        ...

    async def catch_up(self) -> None:
        """Return once the listener has taken every fault of before this call; may be cancelled at any point."""
        ...

    async def close(self) -> None:
        """Let go of the driver. Closing twice is harmless."""
        ...


class FaultStream:
    """Faults on their way from a source to its listener."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[GpuFault | None] = asyncio.Queue()

    def put(self, fault: GpuFault) -> None:
        """Deliver one more; of a storm that nobody can follow, the rest is dropped."""
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put_nowait(fault)

    def end(self) -> None:
        """Deliver what waits, and nothing more."""
        self._waiting.put_nowait(None)

    async def listen(self) -> AsyncIterator[GpuFault]:
        """Give every fault once, until the end."""
        while (fault := await self._waiting.get()) is not None:
            yield fault
            self._waiting.task_done()
        self._waiting.task_done()
        self._waiting.put_nowait(None)  # a second listener sees the end as well

    async def taken(self) -> None:
        """Wait until the listener has come back for more after the last fault that waits now."""
        await self._waiting.join()
