"""Lists over HTTP in other shapes, and what browsers are told to hold."""

import csv
import io
from pathlib import Path

from tests.integration.consoles import certified, console
from tests.integration.fleet import SECRET, running_fleet

HELD = {"command": "true", "hold": True}
CSV = {"Accept": "text/csv"}


async def test_a_list_has_only_the_fields_that_are_asked_for(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        made = (await http.post("/v1/jobs", json={"name": "vit", **HELD})).json()
        listed = await http.get("/v1/jobs?fields=id,spec.name")
        one = await http.get(f"/v1/jobs/{made['id']}?fields=id")
        refused = await http.get("/v1/jobs", params={"fields": "x" * 300})

        assert listed.json() == {"items": [{"id": made["id"], "spec": {"name": "vit"}}], "next": ""}
        assert one.json()["id"] == made["id"]
        assert "spec" in one.json()  # one value is told whole
        assert (refused.status_code, "fields" in refused.json()["detail"]) == (400, True)


async def test_a_list_comes_as_csv_page_by_page_to_who_accepts_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        made = {(await http.post("/v1/jobs", json={"name": name, **HELD})).json()["id"] for name in ("vit", "gpt")}
        query: str | None = "?fields=id&page_size=1"
        found = []
        while query is not None:
            answer = await http.get(f"/v1/jobs{query}", headers=CSV)
            assert answer.headers["content-type"] == "text/csv; charset=utf-8"
            found += list(csv.DictReader(io.StringIO(answer.text)))
            query = answer.links["next"]["url"] if "next" in answer.links else None
        wrong = await http.get("/v1/jobs/nothing", headers=CSV)

        assert {each["id"] for each in found} == made
        assert len(found) == 2
        assert wrong.headers["content-type"] == "application/problem+json"


async def test_browsers_hold_to_https_where_the_console_speaks_it(tmp_path: Path) -> None:
    files = certified(tmp_path)
    async with running_fleet(tmp_path, "a") as fleet:
        async with (
            console(fleet.address, cert=files["cert"], key=files["key"], believed=files["authority"]) as served,
            served.http() as http,
        ):
            secure = (await http.get("/healthz")).headers
        async with console(fleet.address) as served, served.http() as http:
            plain = (await http.get("/healthz")).headers
    assert secure["strict-transport-security"] == "max-age=31536000"
    assert "strict-transport-security" not in plain
    assert {each["cross-origin-opener-policy"] for each in (secure, plain)} == {"same-origin"}
