"""valohai-utils, as it comes from PyPI, finds all that it asks for, with nothing said but the dialect."""

import json
from pathlib import Path
from typing import Any

import pytest

from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from tests.frameworks.environments import interpreter
from tests.integration.fleet import Fleet, executions, running_fleet
from tests.integration.jobs import command

PROGRAM = Path(__file__).with_name("programs") / "valohai_calls.py"


@pytest.mark.parametrize("workers", [1, 3])
async def test_every_call_of_valohai_utils_is_right(tmp_path: Path, workers: int) -> None:
    words = (str(interpreter("valohai")), str(PROGRAM))
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(command(*words, workers=workers, dialects=(Dialect.VALOHAI,)))
        told = await _told(fleet, job)
        assert [each["rank"] for each in told] == list(range(workers))
        for rank, each in enumerate(told):
            _is_right(each, rank, job)
            directories = {name: Path(path) for name, path in each["directories"].items()}
            assert each["variables"] == {
                "VH_CONFIG_DIR": str(directories["config"]),
                "VH_INPUTS_DIR": str(directories["inputs"]),
                "VH_OUTPUTS_DIR": str(directories["outputs"]),
                "VH_REPOSITORY_DIR": str(directories["repository"]),
                "VH_JOB_ID": each["me"]["job_id"],
                "VH_EXECUTION_ID": f"{job.id}-1-{rank}",
                "VH_TASK_ID": f"{job.id}-1",
                "VH_PROJECT_ID": "default",
                "VH_DIST_MEMBER_ID": str(rank),
                "VH_DIST_MEMBER_INDEX": str(rank),
                "VH_DIST_MEMBER_COUNT": str(workers),
                "VH_LOCAL_IP": each["me"]["primary_local_ip"],
                "VH_PUBLIC_IP": each["me"]["primary_public_ip"],
            }
            kept = directories["outputs"] / "models" / "model.txt"
            assert kept.read_text() == f"model of rank {rank}\n"


async def test_without_the_dialect_valohai_utils_finds_no_distributed_task(tmp_path: Path) -> None:
    code = "import valohai; print(valohai.distributed.is_distributed_task(), valohai.execution().config is None)"
    words = (str(interpreter("valohai")), "-c", code)
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(command(*words, workers=2))
        assert sorted(await fleet.texts(job.id, follow=True)) == ["0 False True", "1 False True"]


async def _told(fleet: Fleet, job: JobView) -> list[dict[str, Any]]:
    """What the executions print, by rank; the job must succeed."""
    printed = await fleet.output(job.id, follow=True)
    assert job.phase is JobPhase.SUCCEEDED, (job.summary, printed)
    lines = {line.rank: json.loads(line.text) for line in printed if b"is_distributed_task" in line.text}
    return [lines[rank] for rank in sorted(lines)]


def _is_right(told: dict[str, Any], rank: int, job: JobView) -> None:
    """Whether the calls agree with the job, and with each other."""
    members = told["members"]
    assert told["is_distributed_task"] is True
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
        assert address == {"a": "127.0.0.2", "b": "127.0.0.3"}[str(execution.node)]
    assert told["execution"] == {"counter": job.sequence, "id": f"{job.id}-1-{rank}", "title": "job"}
    assert (told["parameter"], told["input"]) == (3, "none")
    assert told["exist"] == [True, True, True]
    assert told["working_directory"] == told["directories"]["repository"]
