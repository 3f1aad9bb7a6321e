"""People sign in at a console through a real identity provider, in a browser."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from console.api.sessions.cookies import ATTRIBUTES, COOKIE, LOGIN_ATTRIBUTES, LOGIN_COOKIE
from muster.domain.errors import PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access, AccountKind
from tests.integration.consoles import console
from tests.integration.identity_provider import CONSOLE, IdentityProvider
from tests.integration.people import served
from tests.integration.secured import Secured, secured

WAY_BACK = f"{CONSOLE}/v1/login/callback"
BROWSER = "203.0.113.7:51234"


@asynccontextmanager
async def signing_in(provider: IdentityProvider, directory: Path) -> AsyncIterator[tuple[Secured, httpx.AsyncClient]]:
    async with served(provider, directory) as fleet:
        own = await console_token(fleet)
        async with (
            console(fleet.doors.clients, fleet.authority.certificate, token=own, origin=CONSOLE) as page,
            page.http() as http,
        ):
            yield fleet, http


async def console_token(fleet: Secured) -> str:
    async with fleet.client() as admin:
        await admin.accounts.add("console", AccountKind.CONSOLE, {EVERYWHERE: Access.VIEWER})
        secret, _ = await admin.tokens.create("console")
    return secret


async def begun(http: httpx.AsyncClient) -> tuple[str, dict[str, str]]:
    """Where a browser is sent to log in, and the cookie that it shows when it comes back."""
    answer = await http.get("/v1/login")
    assert answer.status_code == 303, answer.text
    cookie, _, attributes = answer.headers["set-cookie"].partition("; ")
    assert attributes == f"Max-Age=600; {LOGIN_ATTRIBUTES}"
    return answer.headers["location"], {"Cookie": cookie}


async def come_back(provider: IdentityProvider, url: str, subject: str) -> str:
    """The path with which the provider sends somebody back to the console who has logged in."""
    sent = await asyncio.to_thread(provider.sign_in, subject, url)
    assert sent.startswith(f"{WAY_BACK}?")
    return sent.removeprefix(CONSOLE)


async def test_a_person_signs_in_through_the_provider_and_may_what_the_groups_say(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    async with signing_in(provider, tmp_path) as (fleet, http):
        url, login = await begun(http)
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{provider.issuer}/auth?")
        assert (asked["redirect_uri"], asked["code_challenge_method"]) == (WAY_BACK, "S256")

        ended = await http.get(await come_back(provider, url, "p-ada"), headers=login)
        assert (ended.status_code, ended.headers["location"]) == (303, "/"), ended.text
        gone, session = sorted(ended.headers.get_list("set-cookie"), key=len)
        assert gone == f"{LOGIN_COOKIE}=; Max-Age=0; {LOGIN_ATTRIBUTES}"
        assert session.startswith(f"{COOKIE}=")
        assert session.endswith(ATTRIBUTES)

        shown = {"Cookie": session.partition(";")[0], "Sec-Fetch-Site": "same-origin"}
        myself = (await http.get("/v1/whoami", headers=shown)).json()
        assert (myself["name"], myself["grants"]) == ("ada", {"vision": "member"})
        assert myself["identity"] == f"{provider.issuer}|p-ada"
        async with fleet.client() as admin:
            entry = next(each for each in await admin.audit.list() if each.what == "logins.complete")
        assert (entry.who, entry.target) == ("ada", "ada")
        assert entry.origin.startswith("ipv4:127.0.0.1:")

        assert (await http.delete("/v1/session", headers=shown)).status_code == 204
        assert (await http.get("/v1/whoami", headers=shown)).status_code == 401


async def test_what_comes_back_counts_once_in_the_browser_that_began_and_for_its_own_login(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    async with signing_in(provider, tmp_path) as (_, http):
        url, login = await begun(http)
        path = await come_back(provider, url, "p-ada")
        elsewhere = await http.get(path)
        assert (elsewhere.status_code, COOKIE + "=" in str(elsewhere.headers)) == (403, False)
        assert "no login has begun in this browser" in elsewhere.json()["detail"]
        assert (await http.get(path, headers=login)).status_code == 303
        again = await http.get(path, headers=login)
        assert (again.status_code, "there is no such login" in again.json()["detail"]) == (404, True)

        _, other = await begun(http)
        swapped = await http.get(await come_back(provider, (await begun(http))[0], "p-ada"), headers=other)
        assert (swapped.status_code, "answers another login than yours" in swapped.json()["detail"]) == (403, True)
        assert len(swapped.headers.get_list("set-cookie")) == 1  # which takes the login away


async def test_whom_the_provider_or_the_groups_let_nowhere_gets_no_session(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    async with signing_in(provider, tmp_path) as (fleet, http):
        url, login = await begun(http)
        nobody = await http.get(await come_back(provider, url, "p-nobody"), headers=login)
        assert (nobody.status_code, "it lists no groups for you" in nobody.json()["detail"]) == (403, True)
        refused = await http.get(await come_back(provider, (await begun(http))[0], "p-stranger"))
        assert "has let nobody in: access_denied" in refused.json()["detail"]
        invented, login = await begun(http)
        state = parse_qs(urlsplit(invented).query)["state"][0]
        forged = await http.get("/v1/login/callback", params={"state": state, "code": "invented"}, headers=login)
        assert (forged.status_code, "invalid_grant" in forged.json()["detail"]) == (409, True)
        async with fleet.client() as admin:
            assert "nobody" not in [account.name for account in await admin.accounts.list()]


async def test_people_are_sent_back_to_the_console_that_the_coordinator_was_told_of_and_nowhere_else(
    provider: IdentityProvider, tmp_path: Path
) -> None:
    async with served(provider, tmp_path) as fleet, fleet.client(await console_token(fleet)) as own:
        for elsewhere in ("https://evil.example/v1/login/callback", f"{CONSOLE}/elsewhere", f"{WAY_BACK}?x=y"):
            with pytest.raises(PermissionDeniedError, match=f"people come back to {CONSOLE} alone"):
                await own.logins.begin(elsewhere, BROWSER)
        login = await own.logins.begin(WAY_BACK, BROWSER)
        assert login.secret not in repr(login)
        async with fleet.client() as admin:
            with pytest.raises(PermissionDeniedError, match="a token of a console's account"):
                await admin.logins.begin(WAY_BACK, BROWSER)
            with pytest.raises(PermissionDeniedError, match="a token of a console's account"):
                await admin.logins.complete(login.secret, state="", code="x", browser=BROWSER)
            entries = [each for each in await admin.audit.list() if each.what == "logins.begin"]
        assert ("https://evil.example/v1/login/callback", "ipv4:203.0.113.7:51234") in {
            (each.target, each.origin) for each in entries
        }
    async with secured(tmp_path / "alone") as fleet, fleet.client(await console_token(fleet)) as own:
        with pytest.raises(UnknownNameError, match="knows no identity provider; sign in with an API token"):
            await own.logins.begin(WAY_BACK, BROWSER)


async def test_a_console_that_was_not_told_its_url_sends_nobody_anywhere(tmp_path: Path) -> None:
    async with (
        secured(tmp_path) as fleet,
        console(fleet.doors.clients, fleet.authority.certificate) as page,
        page.http() as http,
    ):
        refused = await http.get("/v1/login")
    assert (refused.status_code, "--url" in refused.json()["detail"]) == (409, True)
