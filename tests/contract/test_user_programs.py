"""Programs of users as mypy sees them: complete types of both clients, and mistakes found before they run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

GOOD = """
from muster import Client, JobSpec, Role, SyncClient, errors, load_job

spec = JobSpec(name="hello", roles=(Role(command=("hostname",), count=2),))


def run() -> str:
    with SyncClient() as client:
        job = client.jobs.submit(load_job("name: x", "job.yaml"))
        reveal_type(job)
        reveal_type(client.jobs.list())
        for line in client.jobs.logs(job, follow=True):
            reveal_type(line.text)
        try:
            return client.jobs.wait(job, timeout=60).phase
        except errors.InvalidJobError as error:
            reveal_type(error.faults)
            return error.faults[0].message


async def run_async() -> None:
    async with Client() as client:
        reveal_type(await client.jobs.submit(spec))
        reveal_type(await client.nodes.list())
        async for job in client.jobs.list(limit=3):
            reveal_type(job.spec)
"""
REVEALED = [
    "muster.domain.jobs.view.JobView",
    "muster.client.blocking.stream.SyncStream[muster.domain.jobs.view.JobView]",
    "bytes",
    "typing.Sequence[muster.domain.fault.Fault]",
    "muster.domain.jobs.view.JobView",
    "tuple[muster.domain.fleet.node.NodeView, ...]",
    "muster.domain.jobs.job.JobSpec",
]
BAD = """
from muster import JobSpec, Resources, Role, SyncClient

role = Role(command="echo hi")
other = Role(command=("true",), env={"A": 1}, resources=Resources(memory="16Gi"))
with SyncClient() as client:
    client.jobs.submit("job.yaml")
    client.submit(JobSpec(name="x", roles=(role,)))
    client.jobs.list(phase="running")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("user")


def _checked(place: Path, program: str) -> list[str]:
    """What mypy says of a program of a user, who has nothing of this repository but the package."""
    file = place / "program.py"
    file.write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file", os.devnull, file.name]
    environ = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if line.startswith("program.py")]


def test_both_clients_are_typed_for_users(place: Path) -> None:
    said = _checked(place, GOOD)
    assert [line.partition('Revealed type is "')[2].rstrip('"') for line in said] == REVEALED, said


def test_mistakes_are_found_without_running_the_program(place: Path) -> None:
    said = _checked(place, BAD)
    assert [int(line.split(":")[1]) for line in said if ": error:" in line] == [4, 5, 5, 7, 8, 9], said
