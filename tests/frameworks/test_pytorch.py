"""PyTorch's launchers make one world of all executions, with nothing said but the framework."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, Rendezvous
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from tests.frameworks.environments import interpreter
from tests.frameworks.recipes import recipe
from tests.integration.fleet import running_fleet
from tests.integration.jobs import command

ENVIRONMENT_NAMES = ("torch",)
PROGRAMS = Path(__file__).with_name("programs")


def program(name: str) -> str:
    """A program of an environment with PyTorch."""
    return str(interpreter("torch").with_name(name))


def pytorch(**keys: Any) -> Framework:
    return Framework(name=FrameworkName.PYTORCH, **keys)


async def lines(directory: Path, *words: str, framework: Framework | None = None, workers: int = 2) -> list[str]:
    """What the executions of a program print that says what a rank has become."""
    return await lines_of(directory, command(*words, workers=workers, max_per_node=1, framework=framework))


async def lines_of(directory: Path, spec: JobSpec) -> list[str]:
    """What the executions of a job print that says what a rank has become, sorted; the job must succeed."""
    async with running_fleet(directory, "a", "b") as fleet:
        job = await fleet.run(spec)
        printed = await fleet.texts(job.id, follow=True)
        assert job.phase is JobPhase.SUCCEEDED, (job.summary, printed)
        found = (re.search(r"rank \d+ of .*", line) for line in printed)
        return sorted(each[0] for each in found if each is not None)


def of_one_world(told: list[str], size: int) -> bool:
    """Whether each rank of a world of this size is there once, all with the same weights."""
    ranks = [f"rank {rank} of {size} " for rank in range(size)]
    same = len({line.rpartition(" ")[2] for line in told}) == 1
    return len(told) == size and same and all(map(str.startswith, told, ranks))


@pytest.mark.parametrize("rendezvous", Rendezvous)
async def test_torchrun_needs_no_option(tmp_path: Path, rendezvous: Rendezvous) -> None:
    framework = pytorch(processes=2, rendezvous=rendezvous)
    told = await lines(tmp_path, program("torchrun"), str(PROGRAMS / "ddp.py"), framework=framework)
    assert of_one_world(told, 4)
    assert sorted(line.split()[5] for line in told) == ["0", "0", "1", "1"]


@pytest.mark.parametrize("heading", ["Frameworks", "PyTorch"])
async def test_the_recipes_are_right(tmp_path: Path, heading: str) -> None:
    path = f"{interpreter('torch').parent}:{os.defpath}"
    spec = recipe(heading, "train.py", str(PROGRAMS / "ddp.py"), processes=2, path=path)
    assert of_one_world(await lines_of(tmp_path, spec), 4)


async def test_one_process_in_each_execution_needs_no_framework(tmp_path: Path) -> None:
    assert of_one_world(await lines(tmp_path, program("python"), str(PROGRAMS / "ddp.py")), 2)


async def test_weights_are_sharded_over_all_executions(tmp_path: Path) -> None:
    told = await lines(tmp_path, program("python"), str(PROGRAMS / "fsdp.py"))
    assert told == [f"rank {rank} of 2 has 4x4 gradient 64" for rank in range(2)]


async def test_accelerate_finds_its_configuration(tmp_path: Path) -> None:
    """Accelerate starts no process beside its own on CPUs."""
    launch = (
        f"exec {program('accelerate')} launch --config_file $MUSTER_CONFIG_DIR/accelerate.yaml {PROGRAMS / 'ddp.py'}"
    )
    told = await lines(tmp_path, "/bin/sh", "-c", launch, framework=pytorch())
    assert of_one_world(told, 2)


@pytest.mark.parametrize(("processes", "devices"), [(1, 1), (2, 2)])
async def test_lightning_trains_with_one_device_and_with_several(tmp_path: Path, processes: int, devices: int) -> None:
    words = (program("python"), str(PROGRAMS / "fit.py"), str(devices))
    told = await lines(tmp_path, *words, framework=pytorch(processes=processes))
    size = 2 * devices
    assert told == [f"rank {rank} of {size} after 2 steps, by LightningEnvironment" for rank in range(size)]
