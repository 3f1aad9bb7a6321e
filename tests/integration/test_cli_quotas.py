"""`muster departments`, `muster quota`, `muster queue` and `muster projects` against a coordinator."""

import json
from pathlib import Path

from tests.integration.secured import secured
from tests.integration.secured_program import muster

FILE = """
departments:
  research: {quota: {gpus: 6}}
projects:
  vision: {department: research, quota: {gpus: 4}, limit: {gpus: 6}, weight: 2}
"""


async def test_a_file_is_shown_applied_and_applied_again(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        await client.projects.add("vision")
        (tmp_path / "quotas.yaml").write_text(FILE)

        shown = await muster(fleet, "quota", "apply", "quotas.yaml", "--dry-run")
        unasked = await muster(fleet, "quota", "apply", "quotas.yaml")
        first = await muster(fleet, "quota", "apply", "quotas.yaml", "--yes", "-o", "json")
        again = await muster(fleet, "quota", "apply", "-", "--yes", "-o", "json", stdin=FILE)

        assert shown[1].splitlines() == [
            "department research: new",
            "research: quota.gpus not set -> 6 GPUs",
            "vision: department none -> research",
            "vision: quota.gpus not set -> 4 GPUs",
            "vision: limit.gpus not set -> 6 GPUs",
            "vision: weight not set -> 2",
        ]
        assert unasked[0] != 0
        assert "add --yes" in unasked[2]
        assert json.loads(first[1])["applied"] is True
        assert json.loads(again[1]) == {"changes": [], "applied": False, "warnings": []}


async def test_terms_are_set_shown_and_written_down(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        await client.projects.add("vision")

        made = await muster(fleet, "departments", "add", "research")
        done = await muster(fleet, "quota", "set", "vision", "gpus=4", "weight=2", "department=research")
        shown = await muster(fleet, "quota", "show", "vision", "-o", "json")
        terms = await muster(fleet, "quota", "show", "--terms")
        kept = await muster(fleet, "departments", "remove", "research")
        listed = await muster(fleet, "departments")
        projects = await muster(fleet, "projects")

        assert made[0] == 0
        assert done[1].splitlines() == [
            "vision: department none -> research",
            "vision: quota.gpus not set -> 4 GPUs",
            "vision: weight not set -> 2",
        ]
        assert "quotas promise 4 GPUs of pool default, and the pool has 0 GPUs" in done[2]
        [unit] = json.loads(shown[1])
        assert unit["unit"]["department"] == "research"
        assert [each["quota"] for each in unit["pools"]] == [[4000, 0, 0]]
        assert [line.split() for line in terms[1].splitlines()[1:]] == [
            ["vision", "all", "quota.gpus", "4", "GPUs"],
            ["vision", "all", "weight", "2"],
        ]
        assert kept[0] != 0
        assert "department research still has project vision" in kept[2]
        assert listed[1].splitlines()[1].split() == ["research", "vision", "0", "0"]
        assert [line.split()[:5] for line in projects[1].splitlines()[1:]] == [
            ["default", "-", "default", "-", "0"],
            ["vision", "research", "default", "4", "0"],
        ]


async def test_jobs_that_name_a_type_which_their_project_may_not_use_are_refused(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        await client.projects.add("vision")
        (tmp_path / "types.yaml").write_text("projects: {vision: {types: [t4, v100], idle: 4h}}\n")
        applied = await muster(fleet, "quota", "apply", "types.yaml", "--yes")
        wanted = ("run", "--detach", "--project", "vision", "--queue-anyway", "--set")
        refused = await muster(fleet, *wanted, "node_type=v10", "--", "true")
        wrong = await muster(fleet, "quota", "set", "vision", "idle=1s")
        audit = await muster(fleet, "audit")

    assert applied[1].splitlines()[:2] == ["vision: idle not set -> 4h", "vision: types not set -> t4, v100"]
    assert "project vision may not use nodes of type v10, only t4, v100; did you mean v100?" in refused[2]
    assert "idle must be 0 or at least 10s, not 1s" in wrong[2]
    assert "types not set -> t4, v100" in audit[1].replace("\n", " ")


async def test_the_queue_is_told_in_order_with_reasons(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        await client.projects.add("vision")
        await muster(fleet, "quota", "set", "vision", "gpus=2", "limit=2")
        wanted = ("--project", "vision", "--gpus", "4", "--name", "big", "--", "true")
        refused = await muster(fleet, "run", "--detach", *wanted)
        await muster(fleet, "run", "--detach", "--queue-anyway", *wanted)
        queue = await muster(fleet, "queue")
        as_data = await muster(fleet, "queue", "-o", "json")
        why = await muster(fleet, "why", "big")

        assert refused[0] != 0
        assert "vision never has more than its limit of 2 GPUs" in refused[2]
        assert [line.split()[2:7] for line in queue[1].splitlines()[1:]] == [
            ["big", "vision", "default", "preemptible", "borrowed"],
        ]
        assert [line["reason"] for line in json.loads(as_data[1])] == ["limit"]
        assert "vision holds 0 GPUs of its limit of 2 GPUs in pool default, and this needs 4 GPUs" in why[1]
