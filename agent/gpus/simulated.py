"""A source of GPUs that are not there, for demonstrations and tests: `8xH100`, or divided ones: `2xH100/3g.40gb`."""

import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.gpus.health import CRITICAL_XIDS, fault
from agent.gpus.source import FaultStream, GpuFault, GpuReading
from muster.domain.errors import MusterError
from muster.domain.fleet.node import Gpu, GpuProcess
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.placing.mig import MIG_PROFILE, SLICES
from muster.domain.telemetry.sample import GpuUse

NAMESPACE = uuid.UUID("0d0c6a0e-5f0e-5a53-9d4b-6d75737465a1")
"""Makes the UUIDs differ from those of anything else that is named after nodes."""

MOST_SIMULATED_GPUS = 64
"""GPUs of one node; more is a slip of the finger."""
GIGABYTE = 10**9
"""What the number in a MIG profile counts, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What GPUs of one model have in common."""

    name: str
    mib: int
    compute_capability: str
    nvlink: bool
    mig: bool = False
    """Whether such a GPU can be divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPart:
    """GPUs of one model that are all whole, or all divided in the same way."""

    count: int
    model: Model
    profiles: tuple[str, ...] = ()
    """The MIG devices of each; empty: they are whole."""


MODELS: Mapping[str, Model] = {
    "T4": Model(name="Tesla T4", mib=15360, compute_capability="7.5", nvlink=False),
    "V100": Model(name="Tesla V100-SXM2-32GB", mib=32768, compute_capability="7.0", nvlink=True),
    "A10": Model(name="NVIDIA A10", mib=23028, compute_capability="8.6", nvlink=False),
    "A100": Model(name="NVIDIA A100-SXM4-80GB", mib=81920, compute_capability="8.0", nvlink=True, mig=True),
    "L4": Model(name="NVIDIA L4", mib=23034, compute_capability="8.9", nvlink=False),
    "L40S": Model(name="NVIDIA L40S", mib=46068, compute_capability="8.9", nvlink=False),
    "H100": Model(name="NVIDIA H100 80GB HBM3", mib=81559, compute_capability="9.0", nvlink=True, mig=True),
    "H200": Model(name="NVIDIA H200", mib=143771, compute_capability="9.0", nvlink=True, mig=True),
    "B200": Model(name="NVIDIA B200", mib=183359, compute_capability="10.0", nvlink=True, mig=True),
}


class InvalidSimulationError(MusterError):
    """The GPUs to be simulated are not written as numbers and models, or cannot be divided like that."""


class SimulatedSource:
    """GPUs and MIG devices, with the same UUIDs on every start of the node's agent.

    The node has two halves, as two-socket servers have: the first GPUs are on NUMA node 0, the rest on 1.
    """

    def __init__(self, spec: str, node: NodeId) -> None:
        self._gpus = {gpu.uuid: gpu for gpu in _gpus(parse(spec), node)}
        self._faults = FaultStream()
        self._busy: dict[GpuUuid, int] = {}
        self._processes: dict[GpuUuid, tuple[GpuProcess, ...]] = {}

    async def read(self) -> GpuReading:
        """Tell the GPUs, with the faults that were raised."""
        return GpuReading(gpus=tuple(self._gpus.values()), driver="simulated", cuda="12.8")

    def faults(self) -> AsyncIterator[GpuFault]:
        """Every Xid that was raised."""
        return self._faults.listen()

    async def use(self) -> Mapping[GpuUuid, GpuUse]:
        """Tell what was simulated; a GPU that nobody makes busy is idle, and MIG devices tell what they hold alone."""
        return {uuid: _use(gpu, self._busy.get(uuid, 0)) for uuid, gpu in self._gpus.items()}

    async def processes(self) -> Mapping[GpuUuid, Sequence[GpuProcess]]:
        """Tell which processes were simulated."""
        return {uuid: self._processes.get(uuid, ()) for uuid, gpu in self._gpus.items() if gpu.mig is None}

    def run_processes(self, gpu: GpuUuid, *processes: GpuProcess) -> None:
        """Let these processes, and no others, have memory of a GPU from now on."""
        self._processes[gpu] = processes

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


def parse(spec: str) -> tuple[SimulatedPart, ...]:
    """Read `8xH100`, or `6xH100,2xH100/3g.40gb/1g.10gb`: six that are whole, and two with two MIG devices each."""
    parts = tuple(_part(words, spec) for words in spec.split(","))
    if sum(part.count for part in parts) > MOST_SIMULATED_GPUS:
        raise _unreadable(spec)
    return parts


def _part(words: str, spec: str) -> SimulatedPart:
    match = re.fullmatch(r"(\d{1,3})x(\w+)((?:/[^/]+)*)", words)
    if not match or not 0 < int(match[1]) <= MOST_SIMULATED_GPUS:
        raise _unreadable(spec)
    if not (model := MODELS.get(match[2].upper())):
        raise InvalidSimulationError(f"no GPU model {match[2]!r} can be simulated; choose from {', '.join(MODELS)}")
    profiles = tuple(match[3].split("/")[1:])
    if profiles:
        _refuse_wrong_division(words, model, profiles)
    return SimulatedPart(count=int(match[1]), model=model, profiles=profiles)


def _use(gpu: Gpu, percent: int) -> GpuUse:
    """What such a GPU could tell: the busier it is, the more power it takes and the warmer it is."""
    busy = percent / 100
    memory = int(gpu.memory * busy / 2)
    if gpu.mig is not None:
        return GpuUse(memory=memory)
    return GpuUse(
        busy=busy,
        busy_most=busy,
        memory=memory,
        watts=70 + 600 * busy,
        celsius=35 + percent // 3,
        clock_mhz=1980 if percent else 345,
    )


def _unreadable(spec: str) -> InvalidSimulationError:
    return InvalidSimulationError(
        f"GPUs to simulate are written like 8xH100, from 1 to {MOST_SIMULATED_GPUS}, not {spec!r}; "
        "divided ones like 2xH100/3g.40gb/1g.10gb, with commas between them and others"
    )


def _refuse_wrong_division(words: str, model: Model, profiles: tuple[str, ...]) -> None:
    """Refuse what no driver could do: a model without MIG, profiles that are none, more than a GPU has."""
    if not model.mig:
        able = ", ".join(name for name, each in MODELS.items() if each.mig)
        raise InvalidSimulationError(f"{words!r}: {model.name} cannot be divided; {able} can")
    for profile in profiles:
        if not re.fullmatch(MIG_PROFILE, profile):
            raise InvalidSimulationError(f"{words!r}: {profile!r} is no MIG profile; they are written like 1g.10gb")
    slices, gigabytes = sum(map(_slices, profiles)), sum(map(_gigabytes, profiles))
    if slices > SLICES:
        raise InvalidSimulationError(f"{words!r}: the devices have {slices} compute slices, a GPU has {SLICES}")
    if gigabytes * GIGABYTE > model.mib << 20:
        there = (model.mib << 20) // GIGABYTE
        raise InvalidSimulationError(f"{words!r}: the devices have {gigabytes} GB of memory, {model.name} has {there}")


def _slices(profile: str) -> int:
    """The compute slices that a device has: those of `1c.3g.40gb` are one."""
    return int(profile[0])


def _gigabytes(profile: str) -> int:
    found = re.search(r"\.(\d+)gb", profile)
    assert found is not None, profile
    return int(found[1])


def _gpus(parts: tuple[SimulatedPart, ...], node: NodeId) -> Iterator[Gpu]:
    """Every GPU that is whole, and every device of those that are divided, by index."""
    each = [part for part in parts for _ in range(part.count)]
    uuids = [GpuUuid(f"GPU-{uuid.uuid5(NAMESPACE, f'{node}/{index}')}") for index in range(len(each))]
    for index, part in enumerate(each):
        whole = Gpu(
            uuid=uuids[index],
            index=index,
            model=part.model.name,
            memory=part.model.mib << 20,
            compute_capability=part.model.compute_capability,
            pci_bus_id=f"{index:04x}:01:00.0",
            numa_node=0 if 2 * index < len(each) else 1,
            nvlink_peers=tuple(uuids[other] for other, its in enumerate(each) if other != index and _linked(part, its)),
            mig_enabled=bool(part.profiles),
        )
        if part.profiles:
            yield from _divided(whole, part.profiles, node)
        else:
            yield whole


def _linked(one: SimulatedPart, other: SimulatedPart) -> bool:
    """Whether NVLink joins them: GPUs of one model that has it, and that are whole."""
    return one.model is other.model and one.model.nvlink and not one.profiles and not other.profiles


def _divided(whole: Gpu, profiles: tuple[str, ...], node: NodeId) -> Iterator[Gpu]:
    for place, profile in enumerate(profiles):
        yield replace(
            whole,
            uuid=GpuUuid(f"MIG-{uuid.uuid5(NAMESPACE, f'{node}/{whole.index}/{place}')}"),
            model=f"{whole.model} MIG {profile}",
            memory=_gigabytes(profile) * GIGABYTE,
            mig=profile,
        )
