"""People sign in at a console with what they have on the command line: `muster open`, its code, and its session."""

import json
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from coordinator.clock import wall_time
from coordinator.service.trust.sessions import SESSION_LIFE, ConsoleKnown
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import EVERYWHERE, Access, AccountKind
from tests.integration.consoles import ServedConsole, console
from tests.integration.secured import Secured, muster, secured

FOREIGN = {"Origin": "https://evil.example"}
URL = "https://console.example"


@asynccontextmanager
async def signing_in(directory: Path) -> AsyncIterator[tuple[Secured, ServedConsole, httpx.AsyncClient]]:
    """A fleet whose coordinator knows its console, which has a token of its own."""
    async with secured(directory, console=ConsoleKnown(url=URL)) as fleet:
        own = await console_token(fleet)
        async with (
            console(fleet.doors.clients, fleet.authority.certificate, token=own) as served,
            served.http() as http,
        ):
            yield fleet, served, http


async def console_token(fleet: Secured) -> str:
    async with fleet.client() as admin:
        await admin.accounts.add("console", AccountKind.CONSOLE, {EVERYWHERE: Access.VIEWER})
        secret, _ = await admin.tokens.create("console")
    return secret


async def code_of(fleet: Secured, token: str) -> str:
    async with fleet.client(token) as client:
        return (await client.logins.hand()).code


async def shown(http: httpx.AsyncClient, served: ServedConsole, code: str) -> httpx.Response:
    """The code, as the page posts it."""
    return await http.post("/v1/session", json={"code": code}, headers={"Origin": served.url})


def session_of(answer: httpx.Response) -> dict[str, str]:
    """The cookie of an answer, as a page shows it with its next request."""
    assert answer.status_code == 201, answer.text
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0], "Sec-Fetch-Site": "same-origin"}


async def test_a_link_signs_a_browser_in_once_as_whoever_made_it(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (fleet, served, http):
        ada = await fleet.user("ada", {"vision": Access.MEMBER})
        said = json.loads((await muster(fleet, ada, "open", "-o", "json")).stdout)
        link, _, code = said["url"].partition("#code=")
        assert link == f"{URL}/"

        began = await shown(http, served, code)
        assert (began.json()["name"], began.json()["grants"]) == ("ada", {"vision": "member"})
        session = session_of(began)
        assert (await http.get("/v1/whoami", headers=session)).json() == began.json()

        again = await shown(http, served, code)
        assert (again.status_code, "set-cookie" in again.headers) == (403, False)
        assert "it counts once, and for 60 seconds; `muster open` makes another" in again.json()["detail"]
        async with fleet.client() as admin:
            entries = [each for each in await admin.audit.list() if each.what.startswith("logins.")]
        assert [(each.who, each.what, each.target) for each in entries] == [
            ("ada", "logins.hand", "ada"),
            ("ada", "logins.redeem", "ada"),
            ("console", "logins.redeem", ""),
        ]
        assert entries[1].origin.startswith("ipv4:127.0.0.1:")
        assert code not in repr(entries)


async def test_a_session_of_a_link_may_what_its_token_may_and_ends_with_the_sign_out(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (fleet, served, http):
        ada = await fleet.user("ada", {"vision": Access.MEMBER, "speech": Access.MEMBER})
        async with fleet.client(ada) as client:
            looking, _ = await client.tokens.create(access=Access.VIEWER, projects=["vision"])
        session = session_of(await shown(http, served, await code_of(fleet, looking)))
        myself = (await http.get("/v1/whoami", headers=session)).json()
        assert myself["grants"] == {"vision": "viewer"}
        async with fleet.client(ada) as client:
            made = next(token for token in await client.tokens.list() if token.id == myself["token"])
        assert (made.note, made.access, made.projects) == ("session", Access.VIEWER, ("vision",))
        assert made.expires_at is not None
        assert made.expires_at <= wall_time() + SESSION_LIFE

        ended = await http.delete("/v1/session", headers=session)
        assert (ended.status_code, "Max-Age=0" in ended.headers["set-cookie"]) == (204, True)
        assert (await http.get("/v1/whoami", headers=session)).status_code == 401
        async with fleet.client(ada) as client:
            assert (await client.accounts.myself()).name == "ada"


async def test_a_session_of_a_revoked_token_has_ended(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (fleet, served, http):
        ada = await fleet.user("ada", {"vision": Access.MEMBER})
        session = session_of(await shown(http, served, await code_of(fleet, ada)))
        unused = await code_of(fleet, ada)
        myself = (await http.get("/v1/whoami", headers=session)).json()
        async with fleet.client(ada) as client:
            await client.tokens.revoke(myself["token"])
            await client.tokens.revoke((await client.accounts.myself()).token)
        assert (await http.get("/v1/whoami", headers=session)).status_code == 401
        refused = await shown(http, served, unused)
        assert (refused.status_code, refused.json()["detail"]) == (
            403,
            "the token that has made this code was revoked or changed since",
        )


async def test_pages_of_others_sign_nobody_in_and_use_no_code_up(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (fleet, served, http):
        code = await code_of(fleet, fleet.admin_token)
        forged = await http.post("/v1/session", json={"code": code}, headers=FOREIGN)
        assert (forged.status_code, "set-cookie" in forged.headers) == (403, False)
        assert (await shown(http, served, code)).status_code == 201
        for wrong in ({}, {"code": "x", "token": "y"}):
            assert (await http.post("/v1/session", json=wrong)).status_code == 400


async def test_who_tries_codes_is_slowed_down(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (_, served, http):
        answers = [await shown(http, served, f"guess-{number}") for number in range(22)]
        assert [each.status_code for each in answers] == [403] * 20 + [429] * 2


async def test_consoles_alone_redeem_codes(tmp_path: Path) -> None:
    async with signing_in(tmp_path) as (fleet, served, http):
        code = await code_of(fleet, fleet.admin_token)
        async with fleet.client() as admin:
            with pytest.raises(PermissionDeniedError, match="a token of a console's account"):
                await admin.logins.redeem(code, "127.0.0.1:1")
        assert (await shown(http, served, code)).status_code == 201
    async with secured(tmp_path / "other") as fleet, console(fleet.doors.clients, fleet.authority.certificate) as plain:
        async with plain.http() as stranger:
            refused = await shown(stranger, plain, await code_of(fleet, fleet.admin_token))
        assert (refused.status_code, "--token-file" in refused.json()["detail"]) == (409, True)


async def test_a_browser_is_given_a_file_that_only_its_user_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {shlex.quote(str(tmp_path / "opened"))}\n')
    browser.chmod(0o700)
    async with secured(tmp_path / "fleet", console=ConsoleKnown(url=URL)) as fleet:
        ada = await fleet.user("ada", {"vision": Access.MEMBER})
        monkeypatch.setenv("BROWSER", str(browser))
        opened = await muster(fleet, ada, "open")
        assert (opened.exit_code, opened.stdout) == (0, f"your browser opens {URL}/\n")
        page = Path((tmp_path / "opened").read_text().removeprefix("file://"))
        assert page.stat().st_mode & 0o777 == 0o600  # noqa: ASYNC240 - what only takes a moment
        assert f"{URL}/#code=" in page.read_text()  # noqa: ASYNC240 - what only takes a moment
        for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(name, raising=False)
        printed = await muster(fleet, ada, "open")
        assert printed.stdout.startswith(f"{URL}/#code=")
