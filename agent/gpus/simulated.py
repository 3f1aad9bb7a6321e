"""A source of GPUs that are not there, for demonstrations and tests: `8xH100`."""

import re
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

from agent.gpus.health import CRITICAL_XIDS, fault
from agent.gpus.source import FaultStream, GpuFault, GpuReading
from muster.domain.errors import MusterError
from muster.domain.fleet.node import Gpu
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.telemetry.sample import GpuUse

NAMESPACE = uuid.UUID("0d0c6a0e-5f0e-5a53-9d4b-6d75737465a1")
"""Makes the UUIDs differ from those of anything else that is named after nodes."""

MOST_SIMULATED_GPUS = 64
"""GPUs of one node; more is a slip of the finger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What GPUs of one model have in common."""

    name: str
    mib: int
    compute_capability: str
    nvlink: bool


MODELS: Mapping[str, Model] = {
    "T4": Model(name="Tesla T4", mib=15360, compute_capability="7.5", nvlink=False),
    "V100": Model(name="Tesla V100-SXM2-32GB", mib=32768, compute_capability="7.0", nvlink=True),
    "A10": Model(name="NVIDIA A10", mib=23028, compute_capability="8.6", nvlink=False),
    "A100": Model(name="NVIDIA A100-SXM4-80GB", mib=81920, compute_capability="8.0", nvlink=True),
    "L4": Model(name="NVIDIA L4", mib=23034, compute_capability="8.9", nvlink=False),
    "L40S": Model(name="NVIDIA L40S", mib=46068, compute_capability="8.9", nvlink=False),
    "H100": Model(name="NVIDIA H100 80GB HBM3", mib=81559, compute_capability="9.0", nvlink=True),
    "H200": Model(name="NVIDIA H200", mib=143771, compute_capability="9.0", nvlink=True),
    "B200": Model(name="NVIDIA B200", mib=183359, compute_capability="10.0", nvlink=True),
}


class InvalidSimulationError(MusterError):
    """The GPUs to be simulated are not written as a number and a model."""


class SimulatedSource:
    """GPUs of one model, with the same UUIDs on every start of the node's agent.

    The node has two halves, as two-socket servers have: the first GPUs are on NUMA node 0, the rest on 1.
    """

    def __init__(self, spec: str, node: NodeId) -> None:
        count, model = parse(spec)
        self._gpus = {gpu.uuid: gpu for gpu in _gpus(count, model, node)}
        self._faults = FaultStream()
        self._busy: dict[GpuUuid, int] = {}

    async def read(self) -> GpuReading:
        """Tell the GPUs, with the faults that were raised."""
        return GpuReading(gpus=tuple(self._gpus.values()), driver="simulated", cuda="12.8")

    def faults(self) -> AsyncIterator[GpuFault]:
        """Every Xid that was raised."""
        return self._faults.listen()

    async def use(self) -> Mapping[GpuUuid, GpuUse]:
        """Tell what was simulated; a GPU that nobody makes busy is idle."""
        return {uuid: _use(gpu, self._busy.get(uuid, 0)) for uuid, gpu in self._gpus.items()}

    def make_busy(self, gpu: GpuUuid, percent: int) -> None:
        """Let a GPU be so busy from now on."""
        self._busy[gpu] = percent

    async def catch_up(self) -> None:
        """Wait until every fault was heard."""
        await self._faults.taken()

    async def close(self) -> None:
        """End the faults; there is no driver to let go of."""
        self._faults.end()

    def raise_xid(self, gpu: GpuUuid, xid: int) -> None:
        """Let a GPU report an Xid."""
        raised = fault(gpu, xid)
        before = self._gpus[gpu]
        if xid in CRITICAL_XIDS and raised.message not in before.problems:
            self._gpus[gpu] = replace(before, problems=(*before.problems, raised.message))
        self._faults.put(raised)


def parse(spec: str) -> tuple[int, Model]:
    """Read `8xH100`."""
    match = re.fullmatch(r"(\d{1,3})x(\w+)", spec)
    if not match or not 0 < int(match[1]) <= MOST_SIMULATED_GPUS:
        raise InvalidSimulationError(
            f"GPUs to simulate are written like 8xH100, from 1 to {MOST_SIMULATED_GPUS}, not {spec!r}"
        )
    if not (model := MODELS.get(match[2].upper())):
        raise InvalidSimulationError(f"no GPU model {match[2]!r} can be simulated; choose from {', '.join(MODELS)}")
    return int(match[1]), model


def _use(gpu: Gpu, percent: int) -> GpuUse:
    """What such a GPU could tell: the busier it is, the more power it takes and the warmer it is."""
    busy = percent / 100
    return GpuUse(
        busy=busy,
        busy_most=busy,
        memory=int(gpu.memory * busy / 2),
        watts=70 + 600 * busy,
        celsius=35 + percent // 3,
        clock_mhz=1980 if percent else 345,
    )


def _gpus(count: int, model: Model, node: NodeId) -> list[Gpu]:
    uuids = [GpuUuid(f"GPU-{uuid.uuid5(NAMESPACE, f'{node}/{index}')}") for index in range(count)]
    return [
        Gpu(
            uuid=own,
            index=index,
            model=model.name,
            memory=model.mib << 20,
            compute_capability=model.compute_capability,
            pci_bus_id=f"{index:04x}:01:00.0",
            numa_node=0 if 2 * index < count else 1,
            nvlink_peers=tuple(other for other in uuids if other != own and model.nvlink),
            mig_enabled=False,
        )
        for index, own in enumerate(uuids)
    ]
