"""What the node tells of itself, and when that is worth telling again."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent.gpus.simulated import SimulatedSource
from agent.gpus.source import GpuReading
from agent.inventory.inventory import Declared, InventoryReader, changed
from muster.domain.fleet.node import Gpu, GpuProcess, Inventory, RuntimeOffer
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.job import RuntimeKind

GIB = 1 << 30
OFFER = RuntimeOffer(kind=RuntimeKind.PROCESS, version="1")
BUSY = Gpu(uuid=GpuUuid("GPU-1"), index=0, model="H100", memory=80 * GIB, processes=(GpuProcess(pid=7, memory=GIB),))
SEEN = Inventory(cpus=64, memory=512 * GIB, disk_total=1000 * GIB, disk_free=500 * GIB, gpus=(BUSY,))


async def test_a_node_tells_what_the_operating_system_knows(tmp_path: Path) -> None:
    inventory = await InventoryReader(SimulatedSource("2xL4", NodeId("a")), tmp_path, Declared()).read((OFFER,), set)
    assert inventory.cpus == psutil.cpu_count()
    assert inventory.memory == psutil.virtual_memory().total
    assert inventory.disk_total == psutil.disk_usage(str(tmp_path)).total
    assert (inventory.kernel, inventory.architecture) == (os.uname().release, os.uname().machine)
    assert inventory.os
    assert [gpu.model for gpu in inventory.gpus] == ["NVIDIA L4", "NVIDIA L4"]
    assert (inventory.cuda, inventory.gpu_problem, inventory.runtimes) == ("12.8", None, (OFFER,))


async def test_what_the_operator_declares_goes_before_what_is_found(tmp_path: Path) -> None:
    declared = Declared(labels={"rack": "r1"}, cpus=3, memory=5 * GIB)
    inventory = await InventoryReader(SimulatedSource("1xL4", NodeId("a")), tmp_path, declared).read((), set)
    assert (inventory.cpus, inventory.memory, inventory.labels) == (3, 5 * GIB, {"rack": "r1"})


async def test_the_disk_is_found_before_the_state_directory_is_made(tmp_path: Path) -> None:
    reader = InventoryReader(SimulatedSource("1xL4", NodeId("a")), tmp_path / "not" / "yet", Declared())
    assert (await reader.read((), set)).disk_total == psutil.disk_usage(str(tmp_path)).total


class BusyMeanwhile(SimulatedSource):
    """GPUs on which a process computes; executions have some of them before and others after the reading."""

    def __init__(self, before: set[GpuUuid], after: set[GpuUuid]) -> None:
        super().__init__("1xL4", NodeId("a"))
        self.assigned = before
        self._after = after

    async def read(self) -> GpuReading:
        self.assigned = self._after
        return GpuReading(gpus=(BUSY,))


@pytest.mark.parametrize(
    ("before", "after", "usable"), [(set(), {BUSY.uuid}, True), ({BUSY.uuid}, set(), True), (set(), set(), False)]
)
async def test_a_gpu_is_ours_if_an_execution_has_it_before_or_after_the_reading(
    tmp_path: Path, before: set[GpuUuid], after: set[GpuUuid], usable: bool
) -> None:
    source = BusyMeanwhile(before, after)
    inventory = await InventoryReader(source, tmp_path, Declared()).read((), lambda: source.assigned)
    assert [gpu.usable for gpu in inventory.gpus] == [usable]


@pytest.mark.parametrize(
    ("what", "now"),
    [
        ("a problem", {"gpus": (replace(BUSY, problems=("has fallen off the bus",)),)}),
        ("another process", {"gpus": (replace(BUSY, processes=(GpuProcess(pid=8),)),)}),
        ("a GPU less", {"gpus": ()}),
        ("another address", {"addresses": ("10.0.0.7",)}),
        ("a runtime", {"runtimes": (OFFER,)}),
        ("a label", {"labels": {"rack": "r1"}}),
        ("no driver", {"gpu_problem": "NVML did not answer within 10 s"}),
        ("much of the disk", {"disk_free": 489 * GIB}),
    ],
)
def test_what_matters_is_a_change(what: str, now: Mapping[str, Any]) -> None:
    assert changed(SEEN, replace(SEEN, **now)), what


@pytest.mark.parametrize(
    ("what", "now"),
    [
        ("nothing", {}),
        ("the size of a process", {"gpus": (replace(BUSY, processes=(GpuProcess(pid=7, memory=3 * GIB),)),)}),
        ("less than a hundredth of the disk", {"disk_free": 491 * GIB}),
        ("more space than before", {"disk_free": 509 * GIB}),
    ],
)
def test_noise_is_no_change(what: str, now: Mapping[str, Any]) -> None:
    assert not changed(SEEN, replace(SEEN, **now)), what


def test_on_a_small_disk_one_gibibyte_is_noise() -> None:
    small = replace(SEEN, disk_total=20 * GIB, disk_free=10 * GIB)
    assert not changed(small, replace(small, disk_free=9 * GIB))
    assert changed(small, replace(small, disk_free=9 * GIB - 1))


def test_the_command_prints_the_inventory_as_json(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "agent.inventory.inventory",
        "--gpu-provider",
        "fake:8xH100",
        "--state",
        str(tmp_path),
    ]
    printed = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    assert printed["cpus"] == psutil.cpu_count()
    assert [gpu["index"] for gpu in printed["gpus"]] == list(range(8))


def test_the_command_says_in_one_line_what_is_wrong_with_its_arguments() -> None:
    command = [sys.executable, "-m", "agent.inventory.inventory", "--gpu-provider", "rocm"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr == "no GPU provider is called 'rocm'; use nvml, or fake:8xH100 to simulate some\n"
