"""Everything that happens as CloudEvents: over HTTP and from the command line, with a real coordinator and agent."""

import json
from contextlib import aclosing
from pathlib import Path

import httpx

from console.api import following
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.consoles import console
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell
from tests.integration.secured import muster, secured

EVENTS = {"Accept": "text/event-stream"}


async def fields_until(http: httpx.AsyncClient, last: str, headers: dict[str, str]) -> list[dict[str, str]]:
    """The fields of each server-sent event, until one is of that type."""
    told: list[dict[str, str]] = [{}]
    async with http.stream("GET", "/v1/cloudevents", params={"follow": True}, headers=EVENTS | headers) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                told[-1][name] = value
            elif told[-1]:
                if json.loads(told[-1]["data"])["type"] == last:
                    return told
                told.append({})
    raise AssertionError(f"the stream has ended after {told}")


async def test_a_stream_of_everything_goes_on_where_it_was_with_the_same_ids(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        job = await fleet.run(shell("exit 3"))
        whole = await fields_until(http, "muster.job.failed", {"Last-Event-ID": "0-0"})
        rest = await fields_until(http, "muster.job.failed", {"Last-Event-ID": whole[-4]["id"]})
    events = [json.loads(each["data"]) for each in whole]
    assert rest == whole[-3:]
    assert (events[-1]["subject"], events[-1]["data"]["job"]["project"]) == (f"jobs/{job.id}", "default")
    types = {each["type"] for each in events}
    assert {"muster.node.joined", "muster.fleet.project_added", "muster.job.running"} <= types
    assert len({each["id"] for each in events}) == len(events)


async def test_a_list_of_everything_comes_in_parts(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        jobs = await fleet.client.jobs.submit_many([shell("true", hold=True)] * following.CLOUD_EVENTS_AT_ONCE)
        first = (await http.get("/v1/cloudevents")).json()
        second = (await http.get("/v1/cloudevents", params={"after": first["next"]})).json()
    told = [each["subject"] for each in (*first["items"], *second["items"])]
    assert len(first["items"]) == following.CLOUD_EVENTS_AT_ONCE
    assert second["next"] == ""
    assert {f"jobs/{job}" for job in jobs} <= set(told)


async def test_a_place_that_is_none_is_refused(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        answer = await http.get("/v1/cloudevents", params={"after": "yesterday"})
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:muster:problem:invalid")


async def test_whoever_follows_from_now_on_is_told_nothing_old(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        old = await fleet.run(shell("true"))
        async with aclosing(fleet.client.events.pages(follow=True)) as pages:
            _, place = await anext(pages)
            new = await fleet.client.jobs.submit(shell("true", hold=True), queue_anyway=True)
            happenings, after = await anext(pages)
        ended = (await fleet.client.jobs.wait(old.id)).phase
    assert {each.job.id for each in happenings if each.job is not None} == {new.id}
    assert after.jobs > place.jobs
    assert ended is JobPhase.SUCCEEDED


async def test_the_command_line_tells_everything_that_is_stored(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        async with fleet.client() as admin:
            job = await admin.jobs.submit(shell("true", hold=True), queue_anyway=True)
        listed = await muster(fleet, fleet.admin_token, "events", "--all")
        told = json.loads((await muster(fleet, fleet.admin_token, "events", "--all", "-o", "json")).stdout)
    assert "job attempt 1: submitted by admin: 1 execution" in listed.stdout
    assert "fleet: project was added: default" in listed.stdout
    assert "muster.job.submitted" in {each["type"] for each in told if each["subject"] == f"jobs/{job.id}"}
