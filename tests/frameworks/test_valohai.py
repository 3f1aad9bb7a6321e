"""valohai-utils, as it comes from PyPI, finds all that it asks for, with nothing said but the dialect."""

import json
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.job import InlineFile
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.rules.filling_in import filled_in
from muster.domain.jobs.view import JobView
from tests.e2e.deployment import Deployment
from tests.e2e.images import with_packages
from tests.frameworks.environments import ENVIRONMENTS, interpreter
from tests.frameworks.machine_jobs import client_of, run
from tests.integration.fleet import executions, running_fleet
from tests.integration.jobs import command, with_keys

ENVIRONMENT_NAMES = ("valohai",)
PROGRAM = Path(__file__).with_name("programs") / "valohai_calls.py"


@pytest.mark.parametrize("workers", [1, 3, 8])
async def test_every_call_of_valohai_utils_is_right(tmp_path: Path, workers: int) -> None:
    words = (str(interpreter("valohai")), str(PROGRAM))
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(command(*words, workers=workers, dialects=(Dialect.VALOHAI,)))
        told = _told(job, await fleet.texts(job.id, follow=True))
        assert [each["rank"] for each in told] == list(range(workers))
        for rank, each in enumerate(told):
            _is_right(each, rank, job, {"a": "127.0.0.2", "b": "127.0.0.3"})


@pytest.mark.fleet
@pytest.mark.parametrize("workers", [1, 3, 8])
async def test_every_call_is_right_in_containers(machines: Deployment, workers: int) -> None:
    image = with_packages("muster/valohai", *ENVIRONMENTS["valohai"].packages)
    machines.fleet.load(image)
    calls = InlineFile(path="/code/calls.py", content=PROGRAM.read_bytes())
    spec = command("python", "/code/calls.py", workers=workers, dialects=(Dialect.VALOHAI,), image=image.reference)
    spec = filled_in(with_keys(spec, files=(calls,)))
    async with client_of(machines) as client:
        job, printed = await run(client, spec)
    told = _told(job, printed)
    assert [each["rank"] for each in told] == list(range(workers))
    for rank, each in enumerate(told):
        _is_right(each, rank, job, {node.name: node.address for node in machines.fleet.nodes})
        assert each["directories"] == {name: f"/valohai/{name}" for name in each["directories"]}


async def test_without_the_dialect_valohai_utils_finds_no_distributed_task(tmp_path: Path) -> None:
    code = "import valohai; print(valohai.distributed.is_distributed_task(), valohai.execution().config is None)"
    words = (str(interpreter("valohai")), "-c", code)
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(command(*words, workers=2))
        assert sorted(await fleet.texts(job.id, follow=True)) == ["0 False True", "1 False True"]


def _told(job: JobView, printed: list[str]) -> list[dict[str, Any]]:
    """What the executions print, by rank; the job must succeed."""
    assert job.phase is JobPhase.SUCCEEDED, (job.summary, printed)
    told = [json.loads(line[line.index("{") :]) for line in printed if "is_distributed_task" in line]
    return sorted(told, key=itemgetter("rank"))


def _is_right(told: dict[str, Any], rank: int, job: JobView, addresses: Mapping[str, str]) -> None:
    """Whether the calls agree with the job, and with each other."""
    members = told["members"]
    assert told["is_distributed_task"] is True
    assert told["kept"] == f"model of rank {rank}"
    assert (told["group_name"], told["member_id"]) == (f"task-{job.id}-1", str(rank))
    assert told["required_count"] == len(members) == len(executions(job))
    assert (told["me"], told["master"], told["first"]) == (members[rank], members[0], members[0])
    for number, (member, execution) in enumerate(zip(members, executions(job), strict=True)):
        address = member["primary_local_ip"]
        assert member == {
            "job_id": f"exec-{job.id}-1-{number}",
            "member_id": str(number),
            "rank": number,
            "is_master": number == 0,
            "identity": execution.node,
            "announced": True,
            "exposed_ports": {},
            "primary_local_ip": address,
            "primary_public_ip": address,
        }
        assert address == addresses[str(execution.node)]
    assert told["execution"] == {"counter": job.sequence, "id": f"{job.id}-1-{rank}", "title": "job"}
    assert (told["parameter"], told["input"]) == (3, "none")
    assert told["exist"] == [True, True, True]
    directories = told["directories"]
    assert told["working_directory"] == directories["repository"]
    assert told["variables"] == {
        **{f"VH_{name.upper()}_DIR": directories[name] for name in ("config", "inputs", "outputs", "repository")},
        "VH_JOB_ID": told["me"]["job_id"],
        "VH_EXECUTION_ID": f"{job.id}-1-{rank}",
        "VH_TASK_ID": f"{job.id}-1",
        "VH_PROJECT_ID": "default",
        "VH_DIST_MEMBER_ID": str(rank),
        "VH_DIST_MEMBER_INDEX": str(rank),
        "VH_DIST_MEMBER_COUNT": str(len(members)),
        "VH_LOCAL_IP": told["me"]["primary_local_ip"],
        "VH_PUBLIC_IP": told["me"]["primary_public_ip"],
    }
