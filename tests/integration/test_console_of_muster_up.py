"""The console that `muster up` starts serves its fleet over HTTP, to whoever has the fleet's token."""

from pathlib import Path

import httpx

from muster.cli.local.fleet import CONSOLE, FleetPlan, link_of, local_fleet


async def test_a_console_beside_a_local_fleet_answers_with_its_nodes(tmp_path: Path) -> None:
    plan = FleetPlan(directory=tmp_path, nodes=1, listen="127.0.0.1:0", docker=False, companions=(CONSOLE,))
    async with local_fleet(plan) as fleet, httpx.AsyncClient(base_url=fleet.login.console, trust_env=False) as http:
        known = await http.get("/v1/nodes", headers={"Authorization": f"Bearer {fleet.login.token}"})
        stranger = await http.get("/v1/nodes")
        code = (await link_of(fleet.login)).removeprefix(f"{fleet.login.console}/#code=")
        signed_in = await http.post("/v1/session", json={"code": code})

    assert [each["name"] for each in known.json()["items"]] == ["local-1"]
    assert stranger.status_code == 401
    assert (signed_in.status_code, signed_in.json()["name"]) == (201, "local"), signed_in.text
    assert str(tmp_path / "console.log") in map(str, fleet.logs)


async def test_without_companions_there_is_no_console(tmp_path: Path) -> None:
    plan = FleetPlan(directory=tmp_path, nodes=1, listen="127.0.0.1:0", docker=False)
    async with local_fleet(plan) as fleet:
        assert fleet.login.console == ""
        assert await link_of(fleet.login) == ""
