"""JAX, XGBoost and LightGBM find their peers, with nothing said but the framework."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.lifecycle import JobPhase
from tests.frameworks.environments import interpreter
from tests.frameworks.recipes import recipe
from tests.integration.fleet import running_fleet
from tests.integration.jobs import command

ENVIRONMENT_NAMES = ("jax",)
ADDRESSES = ("127.0.0.2", "127.0.0.3")
"""What the nodes `a` and `b` tell their peers."""
PROGRAMS = Path(__file__).with_name("programs")


async def lines(directory: Path, name: FrameworkName, file: str, workers: int) -> list[str]:
    """The last line of each execution, by rank; the job must succeed."""
    words = (str(interpreter("jax")), str(PROGRAMS / file))
    async with running_fleet(directory, "a", "b") as fleet:
        job = await fleet.run(command(*words, workers=workers, framework=Framework(name=name)))
        printed = [line for line in await fleet.output(job.id, follow=True) if line.text]
        assert job.phase is JobPhase.SUCCEEDED, (job.summary, printed)
        last = {line.rank: line.text.decode() for line in printed if b"rank" in line.text and b"Gloo" not in line.text}
        return [last[rank] for rank in range(workers)]


@pytest.mark.parametrize("workers", [2, 3])
async def test_jax_needs_no_arguments(tmp_path: Path, workers: int) -> None:
    told = await lines(tmp_path, FrameworkName.JAX, "jax_sum.py", workers)
    total = sum(range(workers))
    assert told == [f"process {rank} of {workers} is rank {rank}, sum {total}" for rank in range(workers)]


async def test_the_recipe_of_jax_is_right(tmp_path: Path) -> None:
    spec = recipe("JAX", "python train.py", f"{interpreter('jax')} {PROGRAMS / 'jax_sum.py'}")
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(spec)
        told = {f"{rank} process {rank} of 2 is rank {rank}, sum 1" for rank in range(2)}
        assert told <= set(await fleet.texts(job.id, follow=True)), job.summary


@pytest.mark.parametrize("workers", [2, 3])
async def test_xgboost_has_one_model_and_the_ranks_of_the_job(tmp_path: Path, workers: int) -> None:
    told = await lines(tmp_path, FrameworkName.XGBOOST, "xgboost_model.py", workers)
    [model] = {line.rpartition(" ")[2] for line in told}
    assert told == [f"rank {rank} is rabit's {rank}, model {model}" for rank in range(workers)]


@pytest.fixture
def own_addresses() -> Iterator[None]:
    """The nodes' addresses as addresses of this machine, which hears all of 127.0.0.0/8 but lists only its own."""
    if os.geteuid():
        pytest.skip("only root can give this machine another address, by which LightGBM finds itself")
    for action in ("add", "del"):
        for address in ADDRESSES:
            subprocess.run(["ip", "address", action, f"{address}/8", "dev", "lo"], check=False, timeout=10)
        if action == "add":
            yield


@pytest.mark.usefixtures("own_addresses")
@pytest.mark.parametrize("workers", [2, 3])
async def test_lightgbm_has_one_model(tmp_path: Path, workers: int) -> None:
    told = await lines(tmp_path, FrameworkName.LIGHTGBM, "lightgbm_model.py", workers)
    [model] = {line.rpartition(" ")[2] for line in told}
    assert told == [f"rank {rank}, model {model}" for rank in range(workers)]
