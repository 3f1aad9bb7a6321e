"""Live streams about single jobs, and alerts: what they tell, that viewers share them, and with whose rights."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.gpus.open import NvmlSource
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.jobs.lifecycle import JobPhase
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml
from tests.integration.consoles import ServedConsole, console
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell
from tests.integration.secured import secured

EVENTS = {"Accept": "text/event-stream"}
PRINTS = """
echo hello; echo '{"step": 1, "loss": 0.5, "other": 3}'
until [ -e GO_ON ]; do sleep 0.05; done
echo goodbye; echo '{"step": 2, "loss": 0.25}'
"""


class Page:
    """What a page has been told of one job."""

    def __init__(self) -> None:
        self.phases = list[str]()
        self.lines = list[str]()
        self.losses = list[float]()

    def hear(self, told: dict[str, Any]) -> None:
        if "job" in told:
            self.phases.append(told["job"]["phase"])
        self.lines += [line["text"] for line in told.get("logs", {}).get("lines", ())]
        for rank in told.get("points", {}).get("ranks", ()):
            self.losses += [point["values"]["loss"] for point in rank["points"]]


async def events(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def looking(served: ServedConsole, stack: AsyncExitStack, on: str) -> AsyncIterator[dict[str, Any]]:
    """The events of a page that looks until the stack ends."""
    http = await stack.enter_async_context(served.http(SECRET))
    answer = await stack.enter_async_context(http.stream("GET", "/v1/live", params={"on": on}, headers=EVENTS))
    assert answer.status_code == 200
    return events(answer)


async def test_two_pages_share_what_is_told_of_a_job(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    first, second = Page(), Page()
    async with (
        running_fleet(tmp_path, "a") as fleet,
        console(fleet.address, token=SECRET) as served,
        asyncio.timeout(60),
    ):
        assert served.follows is not None
        job = await fleet.client.jobs.submit(shell(PRINTS.replace("GO_ON", str(go_on))))
        on = f"job:{job.id},logs:{job.id},points:{job.id}:loss"
        async with AsyncExitStack() as stack:
            told = await looking(served, stack, on)
            while len(first.lines) < 2 or not first.losses or first.phases[-1] != JobPhase.RUNNING:
                first.hear(await anext(told))
            late = await looking(served, stack, on)
            while len(second.lines) < 2 or not second.losses or not second.phases:
                second.hear(await anext(late))
            shared = served.follows.count
            go_on.touch()
            for page, news in ((first, told), (second, late)):
                while len(page.lines) < 4 or len(page.losses) < 2 or page.phases[-1] != JobPhase.SUCCEEDED:
                    page.hear(await anext(news))
        async with served.http(SECRET) as http:
            while served.follows.count:
                await http.get("/healthz")

    assert shared == 3
    assert first.lines == second.lines
    assert [line for line in first.lines if not line.startswith("{")] == ["hello", "goodbye"]
    assert first.losses == second.losses == [0.5, 0.25]
    assert second.phases[0] == JobPhase.RUNNING


async def test_who_may_not_look_at_a_job_is_told_nothing_of_it(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, asyncio.timeout(60):
        own = await fleet.user("console", {EVERYWHERE: Access.VIEWER})
        ada = await fleet.user("ada", {"vision": Access.VIEWER})
        eve = await fleet.user("eve", {"speech": Access.VIEWER})
        async with fleet.client() as admin:
            job = await admin.jobs.submit(shell("true", hold=True, project="vision"), queue_anyway=True)
        async with console(fleet.doors.clients, fleet.authority.certificate, token=own) as served:
            path = f"/v1/live?on=job:{job.id}"
            async with served.http(eve) as http:
                refused = (await http.get(path)).status_code, (await http.get("/v1/live?on=weather")).status_code
            async with served.http(ada) as http, http.stream("GET", path, headers=EVENTS) as live:
                told = events(live)
                seen = (await anext(told))["job"]["id"]
                async with fleet.client() as admin:
                    await admin.accounts.grant("ada", "vision", None)
                problem = await anext(told)

    assert refused == (404, 400)
    assert seen == job.id
    assert problem["status"] == 401


@pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
async def test_a_gpu_that_breaks_is_an_alert(tmp_path: Path) -> None:
    driver = FakeNvml(tmp_path / "driver", gpus=1)
    async with running_fleet(tmp_path) as fleet, asyncio.timeout(60):
        await fleet.start_agent("a", gpus=NvmlSource({**os.environ, **driver.environ}))
        await fleet.connected("a")
        driver.raise_xid(0, 79)
        async with aclosing(fleet.client.nodes.events("a", follow=True)) as story:
            while (await anext(story)).kind != "gpu_fault":
                pass
        async with console(fleet.address, token=SECRET) as served, AsyncExitStack() as stack:
            told, alerts = await looking(served, stack, "alerts"), list[dict[str, Any]]()
            while not alerts:
                alerts = (await anext(told))["alerts"]
            async with served.http(SECRET) as http:
                listed = (await http.get("/v1/alerts")).json()["items"]

    assert [(each["kind"], each["subject"], each["until"]) for each in alerts] == [("gpu_broken", "nodes/a", None)]
    assert listed == alerts
