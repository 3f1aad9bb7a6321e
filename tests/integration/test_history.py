"""What was used is read over HTTP again, also from a console that was started anew."""

import asyncio
from pathlib import Path
from typing import Any

import httpx

from muster.domain.jobs.lifecycle import State
from tests.integration.consoles import console
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell

SPINS = "while :; do :; done"
TOLD_WITHIN = 40.0


async def told(http: httpx.AsyncClient, path: str) -> list[dict[str, Any]]:
    """What a path answers, as soon as that is something."""
    async with asyncio.timeout(TOLD_WITHIN):
        while True:
            answer = await http.get(path)
            assert answer.status_code == 200, answer.text
            if items := answer.json()["items"]:
                return list(items)


async def test_series_of_jobs_and_nodes_are_read_from_the_history(tmp_path: Path) -> None:
    state = tmp_path / "console"
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell(SPINS, gpus=1, workers=2))
        await fleet.until_states(job.id, State.RUNNING, State.RUNNING)
        async with console(fleet.address, token=SECRET, state=state) as served, served.http(SECRET) as http:
            [cpus] = await told(http, f"/v1/jobs/{job.id}/metrics?quantity=cpus&rank=0")
            [band] = await told(http, f"/v1/jobs/{job.id}/bands?quantity=cpus")
            of_node = await told(http, "/v1/nodes/a/metrics?quantity=memory&quantity=cpus")
            metrics = (await http.get("/metrics")).text
            wrong = await http.get(f"/v1/jobs/{job.id}/metrics?since=2999-01-01T00:00:00Z")
            missing = await http.get("/v1/jobs/nothing/metrics")
        await fleet.client.jobs.stop(job.id)
        async with console(fleet.address, token=SECRET, state=state) as again, again.http(SECRET) as http:
            kept = await told(http, f"/v1/jobs/{job.id}/metrics?quantity=cpus&rank=0&attempt=1")
        async with console(fleet.address) as forgetful, forgetful.http(SECRET) as http:
            nothing = await http.get("/v1/nodes/a/metrics")

    assert (cpus["quantity"], cpus["rank"], cpus["attempt"], cpus["gpu"]) == ("cpus", 0, 1, None)
    assert len(cpus["times"]) == len(cpus["values"]) > 0
    assert (band["quantity"], band["attempt"]) == ("cpus", 1)
    assert band["least"][0] <= band["median"][0] <= band["most"][0]
    assert {*band["least_ranks"], *band["most_ranks"]} <= {0, 1}
    assert {each["quantity"] for each in of_node} == {"cpus", "memory"}
    assert kept[0]["times"][0] <= cpus["times"][0]
    assert "\nmuster_console_history_bytes " in metrics
    assert "\nmuster_console_history_dropped 0\n" in metrics
    assert (wrong.status_code, missing.status_code, nothing.status_code) == (400, 404, 503)
