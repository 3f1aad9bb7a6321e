"""Sessions of browsers over HTTP: signed in with a token, and used by pages of the console alone."""

from pathlib import Path

import httpx

from console.api.sessions.cookies import ATTRIBUTES, COOKIE
from tests.integration.consoles import ServedConsole, console
from tests.integration.fleet import SECRET, running_fleet

FOREIGN = {"Origin": "https://evil.example"}


async def signed_in(served: ServedConsole, http: httpx.AsyncClient, token: str) -> httpx.Response:
    return await http.post("/v1/session", json={"token": token}, headers={"Origin": served.url})


def shown(answer: httpx.Response) -> dict[str, str]:
    """The cookie of an answer, as a browser shows it with its next request."""
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


async def test_a_session_does_what_its_token_may(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http() as http:
        began = await signed_in(served, http, SECRET)
        assert began.status_code == 201, began.text
        cookie, _, attributes = began.headers["set-cookie"].partition("; ")
        assert cookie.startswith(f"{COOKIE}=")
        assert attributes == f"Max-Age=43200; {ATTRIBUTES}"
        assert SECRET not in began.headers["set-cookie"]

        session = shown(began)
        assert (await http.get("/v1/whoami", headers=session)).json() == began.json()
        assert [each["name"] for each in (await http.get("/v1/nodes", headers=session)).json()["items"]] == ["a"]
        job = {"name": "mine", "command": "true", "hold": True}
        made = await http.post("/v1/jobs", json=job, headers={**session, "Origin": served.url})
        assert made.status_code == 201, made.text


async def test_pages_of_others_change_nothing_with_a_session(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http() as http:
        session = shown(await signed_in(served, http, SECRET))
        job = {"name": "forged", "command": "true", "hold": True}
        for said in (FOREIGN, {}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}):
            refused = await http.post("/v1/jobs", json=job, headers={**session, **said})
            assert refused.status_code == 403, refused.text
            assert "a page of somebody else" in refused.json()["detail"]
        assert [each async for each in fleet.client.jobs.list()] == []

        ours = {**session, "Sec-Fetch-Site": "same-origin"}
        assert (await http.post("/v1/jobs", json=job, headers=ours)).status_code == 201


async def test_nobody_is_signed_in_or_out_by_a_page_of_others(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http() as http:
        for answer in (
            await http.post("/v1/session", json={"token": SECRET}, headers=FOREIGN),
            await http.delete("/v1/session", headers=FOREIGN),
        ):
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers


async def test_a_token_that_does_not_count_begins_no_session(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http() as http:
        refused = await signed_in(served, http, "muster_wrong")
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers


async def test_signing_out_takes_the_cookie_away(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http() as http:
        ended = await http.delete("/v1/session", headers={"Origin": served.url})
        assert (ended.status_code, ended.headers["set-cookie"]) == (204, f"{COOKIE}=; Max-Age=0; {ATTRIBUTES}")


async def test_a_token_that_is_shown_outweighs_a_session(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http() as http:
        session = shown(await signed_in(served, http, SECRET))
        wrong = {**session, "Authorization": "Bearer muster_wrong"}
        assert (await http.get("/v1/nodes", headers=wrong)).status_code == 401
        assert (await http.get("/v1/nodes", headers={"Cookie": f"{COOKIE}=nonsense"})).status_code == 401
