"""What the node offers: its GPUs, the operating system's facts, and what the operator says, in one value.

`python -m agent.inventory.inventory` prints it, for those who are to find out why a GPU is not used.
"""

import argparse
import asyncio
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from agent.gpus.open import GpuSource, judge, open_source
from agent.inventory.hardware import HardwareFacts, facts
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.fleet.node import Gpu, GpuProcess, Inventory, RuntimeOffer
from muster.domain.ids import GpuUuid, NodeId

FACTS_DEADLINE = timedelta(seconds=10)
"""A dead network file system under the state directory would answer never."""

DISK_NOISE_SHARE = 0.01
DISK_NOISE = 1 << 30
"""Free disk may move by 1 % of the disk or by 1 GiB, whichever is more, before the coordinator hears of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the operator says about the node."""

    labels: Mapping[str, str] = field(default_factory=dict)
    cpus: int | None = None
    """Offer only so many CPUs; None: all."""
    memory: int | None = None
    """Offer only so many bytes; None: all."""


class InventoryReader:
    """Looks at the node as often as it is asked."""

    def __init__(self, source: GpuSource, state: Path, declared: Declared) -> None:
        self._source = source
        self._state = state
        self._declared = declared

    async def read(self, offers: Sequence[RuntimeOffer], assigned: Callable[[], AbstractSet[GpuUuid]]) -> Inventory:
        """Tell what the node has now; `assigned` gives the GPUs on which executions of ours may compute.

        Executions come and go while the GPUs are read, so those from before and from after are ours.
        """
        ours = assigned()
        reading = await self._source.read()
        found = await self._facts()
        return Inventory(
            cpus=self._declared.cpus or found.cpus,
            memory=self._declared.memory or found.memory,
            disk_total=found.disk_total,
            disk_free=found.disk_free,
            kernel=found.kernel,
            os=found.os,
            architecture=found.architecture,
            addresses=found.addresses,
            gpus=judge(reading.gpus, ours | assigned()),
            gpu_driver=reading.driver,
            cuda=reading.cuda,
            gpu_problem=reading.problem,
            runtimes=tuple(offers),
            labels=self._declared.labels,
        )

    async def _facts(self) -> HardwareFacts:
        try:
            async with asyncio.timeout(FACTS_DEADLINE.total_seconds()):
                return await asyncio.to_thread(facts, self._state)
        except TimeoutError:
            raise UnavailableError(
                f"the file system of {self._state} did not answer within {FACTS_DEADLINE.total_seconds():g} s"
            ) from None


def changed(before: Inventory, after: Inventory) -> bool:
    """Whether the coordinator should hear of it; compare with what it was told last, or small steps add up unseen."""
    noise = max(DISK_NOISE, after.disk_total * DISK_NOISE_SHARE)
    return abs(before.disk_free - after.disk_free) > noise or _lasting(before) != _lasting(after)


def _lasting(inventory: Inventory) -> Inventory:
    """The inventory without what is never twice the same."""
    return replace(inventory, disk_free=0, gpus=tuple(_without_sizes(gpu) for gpu in inventory.gpus))


def _without_sizes(gpu: Gpu) -> Gpu:
    return replace(gpu, processes=tuple(GpuProcess(pid=process.pid) for process in gpu.processes))


async def _print(provider: str, state: Path) -> None:
    source = open_source(provider, NodeId(platform.node()))
    try:
        inventory = await InventoryReader(source, state, Declared()).read((), frozenset)
    finally:
        await source.close()
    sys.stdout.write(json.dumps(asdict(inventory), indent=2) + "\n")


def main() -> None:
    """Print the inventory of this node as JSON, with what its runtimes and its labels are left out."""
    parser = argparse.ArgumentParser(
        prog="python -m agent.inventory.inventory", description="Print what this node has, as JSON."
    )
    parser.add_argument("--gpu-provider", default="nvml", help="nvml (the default), or fake:8xH100 to simulate some")
    parser.add_argument("--state", type=Path, default=Path(), help="a directory on the disk that is looked at")
    arguments = parser.parse_args()
    try:
        asyncio.run(_print(arguments.gpu_provider, arguments.state))
    except MusterError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
