"""Browsers get the pages of the console: packed, kept for ever where their names allow it, under a strict policy."""

import re
from pathlib import Path

from console.api.browser.page_files import INDEX, page_files
from tests.integration.consoles import console
from tests.integration.fleet import running_fleet

BROWSER = {"Accept": "text/html,application/xhtml+xml", "Accept-Encoding": "gzip"}


async def test_each_path_leads_to_the_page_and_its_files_are_kept_for_ever(tmp_path: Path) -> None:
    files = page_files()
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http() as http:
        for path in ("/", "/jobs", "/jobs/tvpdtfjd", "/what/ever"):
            page = await http.get(path, headers=BROWSER)
            assert (page.status_code, page.content) == (200, files[INDEX].content)
            assert page.headers["cache-control"] == "no-cache"
            policy = page.headers["content-security-policy"]
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
            assert "require-trusted-types-for 'script'" in policy
            assert "unsafe" not in policy
        same = await http.get("/", headers=BROWSER | {"If-None-Match": page.headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")

        script = re.search(r'src="(/assets/main-[^"]+)"', page.text)
        assert script is not None
        packed = await http.get(script[1], headers=BROWSER)
        plain = await http.get(script[1], headers={"Accept-Encoding": "identity"})
        assert (packed.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
        assert packed.content == plain.content == files[script[1][1:]].content
        assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert packed.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_programs_are_told_what_is_not_there(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http() as http:
        found = [
            await http.get("/v1/nothing", headers=BROWSER),
            await http.get("/jobs"),
            await http.get("/assets/gone.js"),
        ]
        assert [(each.status_code, each.json()["type"]) for each in found] == [
            (404, "urn:muster:problem:not-found"),
        ] * 3
