"""horovodrun and DeepSpeed's launcher reach all executions through the agents."""

import os
import shutil
from pathlib import Path

import pytest

from muster.domain.jobs.lifecycle import JobPhase
from tests.e2e.deployment import Deployment
from tests.frameworks.environments import interpreter
from tests.frameworks.machine_jobs import client_of, run
from tests.frameworks.recipes import recipe

pytestmark = pytest.mark.fleet

PROGRAMS = Path(__file__).with_name("programs")
ALL_RANKS = [
    "rank 0 of 4 on node1, sum 6",
    "rank 1 of 4 on node1, sum 6",
    "rank 2 of 4 on node2, sum 6",
    "rank 3 of 4 on node2, sum 6",
]


def path(environment: str) -> str:
    return f"{interpreter(environment).parent}:{os.defpath}"


def told(printed: list[str]) -> list[str]:
    """What the ranks say of themselves, without what launchers write before it."""
    return sorted(line[line.index("rank ") :] for line in printed if " sum " in line)


async def test_horovodrun_starts_processes_in_all_executions(machines: Deployment, tmp_path: Path) -> None:
    # Horovod 0.28 looks up the host name of its machine, which these machines cannot.
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{node.address} {node.name}\n" for node in machines.fleet.nodes))
    program = f"mount --bind {hosts} /etc/hosts && exec python {PROGRAMS / 'horovod_sum.py'}"
    new = f"unshare --mount /bin/sh -c '{program}'"
    spec = recipe("Horovod", "python train.py", new, processes=2, path=path("horovod"))
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    assert told(printed) == ALL_RANKS


@pytest.mark.parametrize("which", [0, 1], ids=["pdsh", "no ssh"])
async def test_deepspeed_starts_processes_in_all_executions(machines: Deployment, which: int) -> None:
    if shutil.which("pdsh") is None:
        pytest.skip("needs pdsh")
    program = str(PROGRAMS / "deepspeed_sum.py")
    spec = recipe("DeepSpeed", "train.py", program, processes=2, path=path("deepspeed"), which=which)
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    assert told(printed) == ALL_RANKS
