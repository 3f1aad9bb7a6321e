"""What goes wrong with real drivers, played by a fake libnvidia-ml.so.1: the real ctypes path runs."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from agent.gpus.health import NO_PROFILE, NO_SLICES
from agent.gpus.nvml.source import library_installed
from agent.gpus.open import GpuFault, GpuReading, NvmlSource
from muster.domain.fleet.node import Gpu, GpuProcess
from muster.domain.ids import GpuUuid
from tests.fake_nvml import COMPILER, LIBRARY, NO_COMPILER, FakeNvml

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)

Opened = Callable[[], AbstractAsyncContextManager[NvmlSource]]


@pytest.fixture
def driver(tmp_path: Path) -> FakeNvml:
    return FakeNvml(tmp_path / "driver", gpus=4)


@pytest.fixture
def opened(driver: FakeNvml) -> Opened:
    return lambda: opened_for(driver.directory, driver.environ)


@asynccontextmanager
async def opened_for(
    directory: Path, environ: dict[str, str], deadline: timedelta = timedelta(seconds=60)
) -> AsyncIterator[NvmlSource]:
    assert library_installed({"LD_LIBRARY_PATH": str(directory)})
    source = NvmlSource({**os.environ, **environ}, deadline)
    try:
        yield source
    finally:
        await source.close()


def problems(reading: GpuReading) -> list[tuple[str, ...]]:
    return [gpu.problems for gpu in reading.gpus]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"gpu1.ecc_uncorrected": 1}, "1 uncorrected ECC error; reset the GPU"),
        ({"gpu1.ecc_uncorrected": 3}, "3 uncorrected ECC errors; reset the GPU"),
        ({"gpu1.remap_pending": 1}, "a row of its memory waits to be remapped; reset the GPU"),
        ({"gpu1.remap_failure": 1}, "a row of its memory could not be remapped; replace the GPU"),
        ({"gpu1.lost": 1}, "has fallen off the bus"),
        ({"gpu1.reset_required": 1}, "needs a reset (`nvidia-smi --gpu-reset`, or reboot)"),
        ({"gpu1.mig": 1}, NO_SLICES),
    ],
)
async def test_a_gpu_that_fails_while_the_agent_runs_stays_with_its_problem(
    driver: FakeNvml, opened: Opened, setting: dict[str, int], problem: str
) -> None:
    async with opened() as source:
        before = await source.read()
        driver.set(setting)
        after = await source.read()
    assert problems(before) == [(), (), (), ()]
    assert problems(after) == [(), (problem,), (), ()]
    assert [gpu.uuid for gpu in after.gpus] == [gpu.uuid for gpu in before.gpus]
    assert after.problem is None


async def test_heat_and_load_are_no_problem(driver: FakeNvml, opened: Opened) -> None:
    async with opened() as source:
        before = await source.read()
        driver.set({"temp": 91, "util": 100, "power": 700000, "ecc_corrected": 12})
        assert await source.read() == before


async def test_a_lost_gpu_that_comes_back_is_usable_again(driver: FakeNvml, opened: Opened) -> None:
    async with opened() as source:
        before = await source.read()
        driver.set({"gpu3.lost": 1})
        lost = await source.read()
        driver.set({"gpu3.lost": 0})
        assert await source.read() == before
    assert problems(lost)[3] == ("has fallen off the bus",)


async def test_a_gpu_that_was_lost_from_the_start_is_told_by_its_number(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"gpu0.lost": 1})
    async with opened() as source:
        reading = await source.read()
    assert [gpu.index for gpu in reading.gpus] == [1, 2, 3]
    assert reading.problem == "GPU 0 has fallen off the bus"


async def test_a_gpu_that_the_driver_lists_no_more_stays_with_a_problem(driver: FakeNvml, opened: Opened) -> None:
    async with opened() as source:
        await source.read()
        driver.set({"gpus": 3})
        reading = await source.read()
    assert problems(reading) == [(), (), (), ("is no longer listed by the driver",)]


async def test_xids_of_a_gpu_that_is_lost_are_kept_beside_its_loss(driver: FakeNvml, opened: Opened) -> None:
    async with opened() as source:
        await source.read()
        driver.raise_xid(3, 79)
        driver.set({"gpu3.lost": 1})
        reading = await source.read()
    assert problems(reading)[3] == ("has fallen off the bus", "Xid 79: GPU has fallen off the bus")


async def test_an_xid_reaches_the_listener_without_a_reading(driver: FakeNvml, opened: Opened) -> None:
    async with opened() as source:
        await source.read()
        driver.raise_xid(0, 43)
        fault = await anext(source.faults())
    assert fault == GpuFault(uuid=GpuUuid(driver.uuid(0)), xid=43, message="Xid 43: GPU stopped processing", own=False)


async def test_processes_are_told_with_their_host_pids(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"gpu2.procs": "4300:0,4242:2147483648"})
    async with opened() as source:
        gpus = (await source.read()).gpus
    assert [gpu.processes for gpu in gpus] == [
        (),
        (),
        (GpuProcess(pid=4242, memory=2 << 30), GpuProcess(pid=4300, memory=0)),
        (),
    ]


@pytest.mark.parametrize("unsupported", ["", "p2p"])
async def test_nvlink_pairs_are_found_by_either_way(driver: FakeNvml, opened: Opened, unsupported: str) -> None:
    driver.set({"nvlink": "pairs", "unsupported": unsupported})
    async with opened() as source:
        gpus = (await source.read()).gpus
    assert [gpu.nvlink_peers for gpu in gpus] == [(driver.uuid(other),) for other in (1, 0, 3, 2)]


async def test_the_nearest_numa_node_is_told(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"numa": "3,0,2,1"})
    async with opened() as source:
        gpus = (await source.read()).gpus
    assert [gpu.numa_node for gpu in gpus] == [3, 0, 2, 1]


async def test_what_the_driver_cannot_tell_is_unknown_and_no_problem(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"unsupported": "ecc,remap,mig,numa,p2p,nvlink,procs,events", "bus": "0xfe"})
    async with opened() as source:
        reading = await source.read()
    assert problems(reading) == [(), (), (), ()]
    assert reading.gpus[0] == Gpu(
        uuid=GpuUuid(driver.uuid(0)),
        index=0,
        model="NVIDIA H100 80GB HBM3",
        memory=85520809984,
        compute_capability="9.0",
        pci_bus_id="0000:fe:00.0",
    )


async def test_a_driver_without_the_newer_calls_will_do(tmp_path: Path) -> None:
    old = FakeNvml(tmp_path, gpus=1, old_driver=True)
    old.set({"procs": "77:1024"})
    async with opened_for(tmp_path, old.environ) as source:
        reading = await source.read()
    assert reading.problem is None
    assert [(gpu.mig_enabled, gpu.problems, gpu.processes) for gpu in reading.gpus] == [
        (None, (), (GpuProcess(pid=77, memory=1024),))
    ]


async def test_mig_devices_stand_in_for_the_gpu_that_is_divided(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"gpu1.mig": 1, "gpu1.mig_devices": 2, "gpu1.mig1.procs": "88:5"})
    async with opened() as source:
        gpus = (await source.read()).gpus
    assert [(gpu.index, gpu.uuid) for gpu in gpus] == [
        (0, driver.uuid(0)),
        (1, driver.slice_uuid(1, 0)),
        (1, driver.slice_uuid(1, 1)),
        (2, driver.uuid(2)),
        (3, driver.uuid(3)),
    ]
    slices = gpus[1:3]
    assert {(gpu.model, gpu.memory, gpu.mig_enabled) for gpu in slices} == {
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 85520809984 // 8, True)
    }
    assert [gpu.processes for gpu in slices] == [(), (GpuProcess(pid=88, memory=5),)]


async def test_mig_devices_are_told_by_their_profiles(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"gpu1.mig": 1, "gpu1.mig_devices": 3, "gpu1.mig_profiles": "1g.10gb,1g.10gb+me,3g.40gb"})
    async with opened() as source:
        gpus = (await source.read()).gpus
    assert [gpu.mig for gpu in gpus] == [None, "1g.10gb", "1g.10gb+me", "3g.40gb", None, None]
    assert [gpu.memory >> 30 for gpu in gpus[1:4]] == [10, 10, 40]
    assert all(gpu.usable for gpu in gpus)


async def test_a_mig_device_of_no_known_profile_is_not_used(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"gpu1.mig": 1, "gpu1.mig_devices": 1, "gpu1.mig_profiles": "odd"})
    async with opened() as source:
        gpus = (await source.read()).gpus
    assert [(gpu.mig, gpu.problems) for gpu in gpus] == [(None, ()), (None, (NO_PROFILE,)), (None, ()), (None, ())]


async def test_dividing_a_gpu_anew_leaves_nothing_of_before(driver: FakeNvml, opened: Opened) -> None:
    async with opened() as source:
        whole = await source.read()
        driver.set({"gpu1.mig": 1, "gpu1.mig_devices": 7})
        divided = await source.read()
        driver.set({"gpu1.mig_devices": 3})
        fewer = await source.read()
        driver.set({"gpu1.mig": 0})
        assert await source.read() == whole
    assert (len(divided.gpus), len(fewer.gpus)) == (10, 6)
    assert all(gpu.usable for gpu in (*divided.gpus, *fewer.gpus))


async def test_an_xid_of_one_mig_instance_harms_that_one_only(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"gpu0.mig": 1, "gpu0.mig_devices": 3})
    async with opened() as source:
        await source.read()
        driver.raise_xid(0, 94, instance=8)
        gpus = (await source.read()).gpus
    assert [gpu.uuid for gpu in gpus if not gpu.usable] == [driver.slice_uuid(0, 1)]


async def test_an_xid_of_a_divided_gpu_harms_all_its_mig_devices(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"gpu0.mig": 1, "gpu0.mig_devices": 2})
    async with opened() as source:
        await source.read()
        driver.raise_xid(0, 95)
        gpus = (await source.read()).gpus
    assert [gpu.uuid for gpu in gpus if not gpu.usable] == [driver.slice_uuid(0, 0), driver.slice_uuid(0, 1)]


async def test_a_divided_gpu_that_is_lost_takes_its_mig_devices_with_it(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"gpu0.mig": 1, "gpu0.mig_devices": 2})
    async with opened() as source:
        await source.read()
        driver.set({"gpu0.lost": 1})
        reading = await source.read()
    assert problems(reading) == [("has fallen off the bus",), ("has fallen off the bus",), (), (), ()]


async def test_without_the_kernel_driver_there_is_a_problem_and_no_gpu(driver: FakeNvml, opened: Opened) -> None:
    driver.set({"driver_loaded": 0})
    async with opened() as source:
        reading = await source.read()
        driver.set({"driver_loaded": 1})
        later = await source.read()
    assert reading == GpuReading(
        problem="the NVIDIA kernel driver is not loaded; try `modprobe nvidia` and look for NVRM in `dmesg`"
    )
    assert len(later.gpus) == 4


async def test_a_library_that_cannot_be_loaded_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / LIBRARY).write_bytes(b"")
    async with opened_for(tmp_path, {"LD_LIBRARY_PATH": str(tmp_path)}) as source:
        reading = await source.read()
    assert reading == GpuReading(
        problem="libnvidia-ml.so.1 is there but cannot be loaded; reinstall the libraries of the NVIDIA driver"
    )


@pytest.mark.skipif(library_installed({}), reason="this computer has a real NVML library")
async def test_a_node_without_the_library_has_no_gpus_no_problem_and_no_nvml_process() -> None:
    source = NvmlSource({})
    before = psutil.Process().children()
    assert await source.read() == GpuReading()
    assert psutil.Process().children() == before
    await source.close()


async def test_a_driver_that_hangs_is_given_up_and_asked_again_later(driver: FakeNvml) -> None:
    patience = timedelta(seconds=1)
    async with opened_for(driver.directory, driver.environ, patience) as source:
        driver.set({"hang": 1})
        hung = await source.read()
        driver.set({"hang": 0})
        while (recovered := await source.read()).problem:
            pass  # a slow computer may need more than one try to start the process within the deadline
    assert hung == GpuReading(problem="NVML did not answer within 1 s")
    assert problems(recovered) == [(), (), (), ()]


async def test_gpus_that_were_known_stay_while_the_driver_hangs(driver: FakeNvml) -> None:
    async with opened_for(driver.directory, driver.environ, timedelta(seconds=2)) as source:
        while len((await source.read()).gpus) < 4:
            pass  # as above
        driver.set({"hang": 1})
        hung = await source.read()
    assert problems(hung) == [("NVML did not answer within 2 s",)] * 4
    assert hung.problem == "NVML did not answer within 2 s"


async def test_the_loop_runs_on_while_the_driver_hangs(driver: FakeNvml) -> None:
    driver.set({"hang": 1})
    async with (
        opened_for(driver.directory, driver.environ, timedelta(seconds=1)) as source,
        asyncio.TaskGroup() as tasks,
    ):
        reading = tasks.create_task(source.read(), name="reading")
        turns = 0
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1
    assert turns > 1000
    assert reading.result().problem == "NVML did not answer within 1 s"


async def test_a_driver_that_crashes_harms_its_own_process_only(driver: FakeNvml, opened: Opened) -> None:
    async with opened() as source:
        await source.read()
        driver.set({"crash": 1})
        crashed = await source.read()
        driver.set({"crash": 0})
        recovered = await source.read()
    assert problems(crashed) == [("the NVML process was killed by SIGABRT",)] * 4
    assert problems(recovered) == [()] * 4


async def test_a_read_that_is_cancelled_leaves_the_source_usable(driver: FakeNvml, opened: Opened) -> None:
    async with opened() as source:
        await source.read()
        driver.set({"hang": 1})
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(source.read(), name="reading")
            await asyncio.sleep(0)
            reading.cancel()
        driver.set({"hang": 0})
        assert len((await source.read()).gpus) == 4


async def test_reads_at_the_same_time_all_get_the_gpus(opened: Opened) -> None:
    async with opened() as source:
        first, second, third = await asyncio.gather(source.read(), source.read(), source.read())
    assert first == second == third
    assert len(first.gpus) == 4


async def test_closing_ends_the_nvml_process(opened: Opened) -> None:
    before = psutil.Process().children()
    async with opened() as source:
        await source.read()
        assert len(psutil.Process().children()) == len(before) + 1
    assert psutil.Process().children() == before
