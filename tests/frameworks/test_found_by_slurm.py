"""Libraries that look for Slurm find all executions, with nothing said but the dialect."""

from pathlib import Path

import pytest

from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.lifecycle import JobPhase
from tests.frameworks.environments import interpreter
from tests.integration.fleet import running_fleet
from tests.integration.jobs import command

ENVIRONMENT_NAMES = ("jax", "torch")
PROGRAMS = Path(__file__).with_name("programs")


@pytest.mark.parametrize(
    ("environment", "words", "variables", "told"),
    [
        ("jax", ("jax_sum.py",), {}, "process {rank} of 2 is rank {rank}, sum 1"),
        ("torch", ("fit.py", "1"), {}, "rank {rank} of 2 after 2 steps, by SLURMEnvironment"),
        # submitit sets this variable itself where it has submitted the job.
        ("torch", ("submitit_sum.py",), {"SUBMITIT_EXECUTOR": "slurm"}, "rank {rank} of 2 at 127.0.0.2 local 0, sum 1"),
    ],
    ids=["JAX", "Lightning", "submitit"],
)
async def test_it_joins_all_executions(
    tmp_path: Path, environment: str, words: tuple[str, ...], variables: dict[str, str], told: str
) -> None:
    file, *arguments = words
    line = (str(interpreter(environment)), str(PROGRAMS / file), *arguments)
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(command(*line, workers=2, max_per_node=1, dialects=(Dialect.SLURM,), env=variables))
        printed = await fleet.texts(job.id, follow=True)
        assert job.phase is JobPhase.SUCCEEDED, (job.summary, printed)
        assert {f"{rank} {told.format(rank=rank)}" for rank in range(2)} <= set(printed)
