"""Usage on real programs: from an execution that ends to the command line, past the end of its job."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.gpus.simulated import SimulatedSource
from muster.domain.ids import NodeId
from muster.domain.jobs.job import Resources
from muster.domain.usage import UsageBy
from tests.integration.fleet import running_fleet
from tests.integration.jobs import shell
from tests.integration.secured import secured
from tests.integration.secured_program import muster


async def test_what_a_job_held_is_told_when_it_is_deleted_and_the_coordinator_was_restarted(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("true"))
        running = await fleet.client.projects.usage(by=UsageBy.JOB)
        await fleet.client.jobs.delete(job.id)
        await fleet.restart_coordinator()
        since = datetime.now(UTC) - timedelta(hours=1)
        [row] = (await fleet.client.projects.usage(by=UsageBy.JOB, since=since)).rows
        [project] = (await fleet.client.projects.usage()).rows

    assert running.rows == (row,)
    assert (row.of, row.project, row.user, row.attempts) == (job.id, "default", "local", 1)
    assert (project.of, project.held) == ("default", row.held)
    assert 0 < row.held.cpus < 1000 * 60


async def test_the_command_answers_as_a_table_as_a_document_and_as_csv(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        table = await muster(fleet, "usage", "--by", "user", "--since", "7d")
        told = json.loads((await muster(fleet, "usage", "-o", "json", "--since", "all"))[1])
        rows = list(csv.reader((await muster(fleet, "usage", "-o", "csv", "--by", "job"))[1].splitlines()))
        wrong = await muster(fleet, "usage", "--since", "soon")
        ahead = await muster(fleet, "usage", "--since", "2126-01-01")
        unknown = await muster(fleet, "usage", "--by", "colour")

    assert table[1].split()[:3] == ["USER", "GPU", "HOURS"]
    assert (told["by"], told["since"], told["kept_since"], told["rows"]) == ("project", None, None, [])
    [head] = rows
    assert head[:7] == ["of", "name", "project", "user", "gpu_hours", "cpu_hours", "gib_hours"]
    assert "neither a time ago such as 7d" in " ".join(wrong[2].split())
    assert "must be before until, and have passed" in ahead[2]
    assert unknown[0] != 0


async def test_busy_time_of_gpus_comes_from_the_driver_to_the_report(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        source = SimulatedSource("2xH100", NodeId("a"))
        await fleet.start_agent("a", gpus=source)
        await fleet.connected("a")
        for gpu, percent in zip((await source.read()).gpus, (100, 50), strict=True):
            source.make_busy(gpu.uuid, percent)
        computes = await fleet.run(shell("sleep 12", resources=Resources(gpus=2, cpu_millis=100)))
        rests = await fleet.run(shell("true"))
        rows = {row.of: row for row in (await fleet.client.projects.usage(by=UsageBy.JOB)).rows}

    row = rows[computes.id]
    assert row.busy is not None
    assert 0 < row.busy <= row.held.gpus * 3 // 4
    assert rows[rests.id].busy is None
