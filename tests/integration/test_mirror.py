"""A real console with a mirror, before a real coordinator: lists and live streams with the caller's own rights."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from console.mirror.follower import MirrorFollower
from coordinator.store.records.sql import SqlStore
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import EVERYWHERE, Access
from tests.integration.consoles import ServedConsole, console
from tests.integration.jobs import shell
from tests.integration.secured import Secured, secured

CALLERS = {
    "viewer": {"vision": Access.VIEWER},
    "member": {"vision": Access.MEMBER},
    "operator": {"speech": Access.OPERATOR},
    "viewer of both": {"vision": Access.VIEWER, "speech": Access.VIEWER},
    "fleet viewer": {EVERYWHERE: Access.VIEWER},
    "fleet admin": {EVERYWHERE: Access.ADMIN},
}
ANY = "name=@"
"""A condition that holds always, so that the mirror alone can answer."""
LIVE = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Mirrored:
    """A fleet with a console that keeps a mirror, and one beside it that does not."""

    fleet: Secured
    served: ServedConsole
    plain: ServedConsole

    async def submit(self, name: str, project: str) -> str:
        """A job that waits, submitted past the console that keeps the mirror."""
        async with self.plain.http(self.fleet.admin_token) as admin:
            job = {"name": name, "command": "true", "hold": True, "project": project}
            answer = await admin.post("/v1/jobs", json=job, params={"queue_anyway": True})
            assert answer.status_code == 201, answer.text
            return str(answer.json()["id"])


@asynccontextmanager
async def mirrored(directory: Path) -> AsyncIterator[Mirrored]:
    async with secured(directory) as fleet:
        own = await fleet.user("console", {EVERYWHERE: Access.VIEWER})
        await fleet.user("first", {"vision": Access.VIEWER, "speech": Access.VIEWER})  # so the projects are there
        authority = fleet.authority.certificate
        async with (
            console(fleet.doors.clients, authority) as plain,
            console(fleet.doors.clients, authority, token=own) as served,
        ):
            yield Mirrored(fleet, served, plain)


async def until_listed(http: httpx.AsyncClient, *names: str) -> list[dict[str, Any]]:
    """The jobs of the mirror once it has these."""
    seen = set[str]()
    async with asyncio.timeout(30), http.stream("GET", "/v1/live", headers=LIVE) as live:
        async for _, told in events(live):
            seen |= {job["spec"]["name"] for job in told.get("jobs", ())}
            if seen >= set(names):
                break
    return list((await http.get("/v1/jobs", params={"where": ANY})).json()["items"])


async def events(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Id and data of the events of a live stream."""
    place, name = "", ""
    async for line in answer.aiter_lines():
        key, _, value = line.partition(": ")
        if key == "id":
            place = value
        elif key == "event":
            name = value
        elif key == "data":
            yield (place if name == "changes" else name), json.loads(value)


@pytest.mark.parametrize("name", CALLERS)
async def test_the_mirror_shows_each_caller_what_the_coordinator_does(tmp_path: Path, name: str) -> None:
    async with mirrored(tmp_path) as it:
        for project in ("vision", "speech"):
            await it.submit(f"of-{project}", project)
        token = await it.fleet.user("caller", CALLERS[name])
        async with it.served.http(it.fleet.admin_token) as admin:
            await until_listed(admin, "of-vision", "of-speech")
        async with it.served.http(token) as http, it.plain.http(token) as asked:
            for query in ("", "?page_size=1", "?project=speech", "?name=of-v", "?mine=true", "?phase=waiting"):
                mirror, coordinator = await http.get(f"/v1/jobs{query}"), await asked.get(f"/v1/jobs{query}")
                assert mirror.json() == coordinator.json(), query
            whole = (await asked.get("/v1/jobs")).json()["items"]
            assert (await http.get("/v1/jobs", params={"where": ANY})).json()["items"] == whole
            params = {"on": ["jobs", "projects", "queue"]}
            async with http.stream("GET", "/v1/live", params=params, headers=LIVE) as live:
                _, told = await anext(events(live))
            assert sorted(job["id"] for job in told.get("jobs", ())) == sorted(job["id"] for job in whole)
            projects = (await asked.get("/v1/projects")).json()["items"]
            assert sorted(told.get("projects", ()), key=lambda project: str(project["name"])) == projects
            assert told["queue"] == (await asked.get("/v1/queue")).json()["items"]


async def test_who_may_look_at_nothing_and_strangers_are_refused_as_by_the_coordinator(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as it:
        nobody = await it.fleet.user("nobody", {})
        paths = ("/v1/jobs", f"/v1/jobs?where={ANY}", f"/v1/nodes?where={ANY}", "/v1/live")
        async with it.served.http(nobody) as http, it.served.http("muster-none") as stranger:
            assert [(await http.get(path)).status_code for path in paths] == [403] * 4
            assert [(await stranger.get(path)).status_code for path in paths] == [401] * 4


async def test_whoever_has_just_changed_something_finds_it_in_every_list(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as it:
        token = await it.fleet.user("ada", {"vision": Access.MEMBER})
        async with it.served.http(token) as http:
            for number in range(5):
                job = {"name": f"job{number}", "command": "true", "hold": True, "project": "vision"}
                await http.post("/v1/jobs", json=job, params={"queue_anyway": True})
                found = (await http.get("/v1/jobs", params={"where": f"name==job{number}"})).json()["items"]
                plain = (await http.get("/v1/jobs", params={"name": f"job{number}"})).json()["items"]
                assert (
                    [job["spec"]["name"] for job in found] == [job["spec"]["name"] for job in plain] == [f"job{number}"]
                )


async def test_lists_are_filtered_sorted_and_paged(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as it, it.served.http(it.fleet.admin_token) as http:
        for name in ("b", "c", "a"):
            await it.submit(name, "vision")
        await until_listed(http, "a", "b", "c")
        first = (await http.get("/v1/jobs", params={"sort": "-name", "page_size": 2})).json()
        rest = (await http.get("/v1/jobs", params={"sort": "-name", "page_size": 2, "page": first["next"]})).json()
        assert [job["spec"]["name"] for job in first["items"] + rest["items"]] == ["c", "b", "a"]
        assert rest["next"] == ""
        wrong = await http.get("/v1/jobs", params={"where": "fase==running"})
        assert (wrong.status_code, "no field 'fase'" in wrong.json()["detail"]) == (400, True)


async def test_a_live_stream_tells_of_changes_and_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as it, it.served.http(it.fleet.admin_token) as http, asyncio.timeout(60):
        first = await it.submit("first", "vision")
        await until_listed(http, "first")
        async with http.stream("GET", "/v1/live", headers=LIVE) as live:
            told = events(live)
            _, begun = await anext(told)
            assert (begun["anew"], [job["id"] for job in begun["jobs"]]) == (True, [first])
            second = await it.submit("second", "vision")
            place, change = await anext(told)
            assert ([job["id"] for job in change["jobs"]], "anew" in change) == ([second], False)
        third = await it.submit("third", "vision")
        await until_listed(http, "third")
        async with http.stream("GET", "/v1/live", headers=LIVE | {"Last-Event-ID": place}) as live:
            _, missed = await anext(events(live))
        assert ([job["id"] for job in missed["jobs"]], "anew" in missed) == ([third], False)


async def test_a_live_stream_goes_on_at_a_console_that_was_started_anew(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as it, asyncio.timeout(60):
        await it.submit("first", "vision")
        own, authority = await it.fleet.user("again", {EVERYWHERE: Access.VIEWER}), it.fleet.authority.certificate
        async with it.served.http(it.fleet.admin_token) as http:
            before = await until_listed(http, "first")
            async with http.stream("GET", "/v1/live", headers=LIVE) as live:
                place, _ = await anext(events(live))
        second = await it.submit("second", "vision")
        async with (
            console(it.fleet.doors.clients, authority, token=own) as again,
            again.http(it.fleet.admin_token) as http,
        ):
            after = await until_listed(http, "first", "second")
            async with http.stream("GET", "/v1/live", headers=LIVE | {"Last-Event-ID": place}) as live:
                _, missed = await anext(events(live))
        assert after[1:] == before
        assert second in {job["id"] for job in missed["jobs"]}
        assert "anew" not in missed


@pytest.mark.parametrize("grants", [None, {"speech": Access.VIEWER}])
async def test_a_live_stream_ends_as_soon_as_the_callers_rights_change(
    tmp_path: Path, grants: dict[str, Access] | None
) -> None:
    async with mirrored(tmp_path) as it, asyncio.timeout(30):
        token = await it.fleet.user("ada", {"vision": Access.VIEWER})
        async with it.served.http(token) as http, http.stream("GET", "/v1/live", headers=LIVE) as live:
            told = events(live)
            await anext(told)
            async with it.fleet.client() as admin:
                if grants is None:
                    await admin.tokens.revoke((await http.get("/v1/whoami")).json()["token"])
                else:
                    await admin.accounts.grant("ada", "speech", grants["speech"])
            name, problem = await anext(told)
            assert (name, problem["status"]) == ("problem", 401)


async def test_a_console_without_a_token_of_its_own_says_what_it_cannot_answer(tmp_path: Path) -> None:
    async with mirrored(tmp_path) as it, it.plain.http(it.fleet.admin_token) as http:
        for path in (f"/v1/jobs?where={ANY}", "/v1/jobs?sort=name", "/v1/nodes?sort=name", "/v1/live"):
            answer = await http.get(path)
            assert (answer.status_code, "--token-file" in answer.json()["detail"]) == (503, True), path


async def test_a_token_that_does_not_see_all_gives_no_mirror(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        narrow = await fleet.user("narrow", {"vision": Access.VIEWER})
        async with fleet.client(narrow) as client:
            with pytest.raises(PermissionDeniedError, match="narrow does not see all projects"):
                await MirrorFollower(client).follow()


async def test_the_coordinators_records_are_the_same_with_and_without_a_console(tmp_path: Path) -> None:
    """All but times, ids and what follows from those."""
    records = []
    for name, with_console in (("without", False), ("with", True)):
        async with secured(tmp_path / name) as fleet:
            own = await fleet.user("console", {EVERYWHERE: Access.VIEWER})
            async with AsyncExitStack() as beside:
                if with_console:
                    served = await beside.enter_async_context(
                        console(fleet.doors.clients, fleet.authority.certificate, token=own)
                    )
                    http = await beside.enter_async_context(served.http(fleet.admin_token))
                    live = await beside.enter_async_context(http.stream("GET", "/v1/live", headers=LIVE))
                    await anext(events(live))
                async with fleet.client() as admin:
                    kept = await admin.jobs.submit(
                        shell("true", name="kept", hold=True), queue_anyway=True, idempotency_key="kept"
                    )
                    gone = await admin.jobs.submit(
                        shell("true", name="gone", hold=True), queue_anyway=True, idempotency_key="gone"
                    )
                    await admin.jobs.stop(gone.id)
                    await admin.jobs.delete(gone.id)
                    await admin.jobs.unhold(kept.id)
                if with_console:
                    await until_listed(http, "kept")
        records.append(stored(tmp_path / name, kept.id))
    assert records[0] == records[1]


def stored(directory: Path, job: str) -> list[str]:
    """What a coordinator has stored of everything, without times and without the id of a job."""
    with closing(SqlStore.open(directory / "coordinator.db")) as store:
        records = [repr(record) for record in store.load().records]
    return sorted(re.sub(r"datetime\.datetime\([^)]*\)", "TIME", record.replace(job, "JOB")) for record in records)
