"""Every source of GPUs keeps the contract of `agent.gpus.source`; NVML's own troubles are in `test_nvml_source.py`."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from agent.gpus.open import GpuFault, GpuSource, NvmlSource
from agent.gpus.simulated import SimulatedSource
from muster.domain.fleet.node import GpuProcess
from muster.domain.ids import GpuUuid, NodeId
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml


class Rig(Protocol):
    """A source of four GPUs whose faults a test can raise."""

    source: GpuSource

    def raise_xid(self, index: int, uuid: GpuUuid, xid: int) -> None: ...

    def make_busy(self, index: int, uuid: GpuUuid, percent: int) -> None: ...

    def run_processes(self, index: int, uuid: GpuUuid, *processes: GpuProcess) -> None: ...


class Nvml:
    def __init__(self, directory: Path) -> None:
        self._driver = FakeNvml(directory, gpus=4)
        self.source = NvmlSource({**os.environ, **self._driver.environ})

    def raise_xid(self, index: int, uuid: GpuUuid, xid: int) -> None:  # noqa: ARG002 - the driver goes by number
        self._driver.raise_xid(index, xid)

    def make_busy(self, index: int, uuid: GpuUuid, percent: int) -> None:  # noqa: ARG002 - the driver goes by number
        self._driver.set({f"gpu{index}.util": percent})

    def run_processes(self, index: int, uuid: GpuUuid, *processes: GpuProcess) -> None:  # noqa: ARG002 - by number
        self._driver.set({f"gpu{index}.procs": ",".join(f"{each.pid}:{each.memory}" for each in processes)})


class Simulated:
    def __init__(self, directory: Path) -> None:  # noqa: ARG002 - needs no files
        self.source = SimulatedSource("4xH100", NodeId("node-1"))

    def raise_xid(self, index: int, uuid: GpuUuid, xid: int) -> None:  # noqa: ARG002 - goes by UUID
        self.source.raise_xid(uuid, xid)

    def make_busy(self, index: int, uuid: GpuUuid, percent: int) -> None:  # noqa: ARG002 - goes by UUID
        self.source.make_busy(uuid, percent)

    def run_processes(self, index: int, uuid: GpuUuid, *processes: GpuProcess) -> None:  # noqa: ARG002 - by UUID
        self.source.run_processes(uuid, *processes)


Opened = Callable[[], AbstractAsyncContextManager[Rig]]


@pytest.fixture(
    params=[
        Simulated,
        pytest.param(Nvml, marks=pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)),
    ]
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    @asynccontextmanager
    async def open_rig() -> AsyncIterator[Rig]:
        rig: Rig = request.param(tmp_path)
        try:
            yield rig
        finally:
            await rig.source.close()

    return open_rig


async def test_a_reading_tells_every_gpu_with_model_memory_and_capability(opened: Opened) -> None:
    async with opened() as rig:
        gpus = (await rig.source.read()).gpus
    assert [(gpu.index, gpu.model, gpu.memory, gpu.compute_capability) for gpu in gpus] == [
        (index, "NVIDIA H100 80GB HBM3", 85520809984, "9.0") for index in range(4)
    ]


async def test_the_driver_and_its_cuda_version_are_told(opened: Opened) -> None:
    async with opened() as rig:
        reading = await rig.source.read()
    assert (reading.cuda, reading.problem) == ("12.8", None)
    assert reading.driver


async def test_every_gpu_has_a_uuid_of_its_own_that_stays(opened: Opened) -> None:
    async with opened() as rig:
        first, second = await rig.source.read(), await rig.source.read()
    assert len({gpu.uuid for gpu in first.gpus}) == 4
    assert all(gpu.uuid.startswith("GPU-") for gpu in first.gpus)
    assert first == second


async def test_healthy_gpus_are_usable_and_idle(opened: Opened) -> None:
    async with opened() as rig:
        gpus = (await rig.source.read()).gpus
    assert [(gpu.usable, gpu.problems, gpu.processes, gpu.mig_enabled) for gpu in gpus] == [(True, (), (), False)] * 4


async def test_linked_gpus_name_each_other_and_not_themselves(opened: Opened) -> None:
    async with opened() as rig:
        gpus = (await rig.source.read()).gpus
    everyone = {gpu.uuid for gpu in gpus}
    assert [set(gpu.nvlink_peers) for gpu in gpus] == [everyone - {gpu.uuid} for gpu in gpus]


async def test_half_of_the_gpus_are_near_each_socket(opened: Opened) -> None:
    async with opened() as rig:
        gpus = (await rig.source.read()).gpus
    assert [gpu.numa_node for gpu in gpus] == [0, 0, 1, 1]
    assert len({gpu.pci_bus_id for gpu in gpus}) == 4


async def test_a_critical_xid_is_delivered_and_makes_the_gpu_unusable_in_the_next_reading(opened: Opened) -> None:
    async with opened() as rig:
        uuid = (await rig.source.read()).gpus[2].uuid
        rig.raise_xid(2, uuid, 79)
        gpus = (await rig.source.read()).gpus
        fault = await anext(rig.source.faults())
    assert [gpu.problems for gpu in gpus] == [(), (), ("Xid 79: GPU has fallen off the bus",), ()]
    assert fault == GpuFault(uuid=uuid, xid=79, message="Xid 79: GPU has fallen off the bus", own=True)


async def test_an_xid_of_the_applications_making_is_delivered_and_harms_nothing(opened: Opened) -> None:
    async with opened() as rig:
        uuid = (await rig.source.read()).gpus[1].uuid
        rig.raise_xid(1, uuid, 31)
        gpus = (await rig.source.read()).gpus
        fault = await anext(rig.source.faults())
    assert all(gpu.usable for gpu in gpus)
    assert fault == GpuFault(uuid=uuid, xid=31, message="Xid 31: GPU memory page fault", own=False)


async def test_an_xid_that_comes_again_is_one_problem_and_two_faults(opened: Opened) -> None:
    async with opened() as rig:
        uuid = (await rig.source.read()).gpus[0].uuid
        for _ in range(2):
            rig.raise_xid(0, uuid, 48)
            gpus = (await rig.source.read()).gpus
        await rig.source.close()
        faults = [fault.xid async for fault in rig.source.faults()]
    assert gpus[0].problems == ("Xid 48: double bit ECC error",)
    assert faults == [48, 48]


async def test_who_has_caught_up_has_heard_every_fault(opened: Opened) -> None:
    heard: list[int] = []

    async def listen(source: GpuSource) -> None:
        async for fault in source.faults():
            heard.append(fault.xid)  # noqa: PERF401 - each at once

    async with opened() as rig, asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen(rig.source), name="listener")
        uuid = (await rig.source.read()).gpus[3].uuid
        for xid in (31, 79):
            rig.raise_xid(3, uuid, xid)
            await rig.source.catch_up()
            assert heard[-1] == xid
        listening.cancel()


async def test_it_tells_how_busy_each_gpu_is(opened: Opened) -> None:
    async with opened() as rig:
        uuids = [gpu.uuid for gpu in (await rig.source.read()).gpus]
        for index, percent in enumerate((0, 2, 50, 100)):
            rig.make_busy(index, uuids[index], percent)
        used = await rig.source.use()
        assert {uuid: use.busy for uuid, use in used.items()} == dict(zip(uuids, (0, 0.02, 0.5, 1), strict=True))


async def test_it_tells_the_processes_of_each_gpu_with_their_memory(opened: Opened) -> None:
    async with opened() as rig:
        uuids = [gpu.uuid for gpu in (await rig.source.read()).gpus]
        both = (GpuProcess(pid=42, memory=5 << 30), GpuProcess(pid=43, memory=1))
        rig.run_processes(1, uuids[1], *both)
        told = await rig.source.processes()
        assert {uuid: tuple(each) for uuid, each in told.items()} == dict.fromkeys(uuids, ()) | {uuids[1]: both}


async def test_it_tells_what_each_gpu_takes(opened: Opened) -> None:
    async with opened() as rig:
        [first, *_] = (await rig.source.read()).gpus
        use = (await rig.source.use())[first.uuid]
        assert use.memory is not None
        assert 0 <= use.memory <= first.memory
        assert use.watts == 70
        assert use.celsius == 35
        assert not use.throttled


async def test_use_is_asked_for_beside_a_reading(opened: Opened) -> None:
    async with opened() as rig:
        await rig.source.read()
        used, reading, again = await asyncio.gather(rig.source.use(), rig.source.read(), rig.source.use())
        assert used.keys() == again.keys() == {gpu.uuid for gpu in reading.gpus}


async def test_faults_end_when_the_source_is_closed(opened: Opened) -> None:
    async with opened() as rig:
        await rig.source.read()
        await rig.source.close()
        assert [fault async for fault in rig.source.faults()] == []


async def test_a_source_that_never_read_can_be_closed_twice(opened: Opened) -> None:
    async with opened() as rig:
        await rig.source.close()
        await rig.source.close()
