"""Arranging a fleet over HTTP: pools, windows and quotas, and something done with many jobs at once."""

from pathlib import Path

from tests.integration.consoles import console
from tests.integration.fleet import SECRET, running_fleet


async def test_a_pool_is_set_up_replaced_and_forgotten(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        refused = await http.put("/v1/pools/h100", json={"selector": {"gpu": "h100"}})
        made = await http.put("/v1/pools/h100?anyway=true", json={"selector": {"gpu": "h100"}, "longest_run": 3600})
        listed = (await http.get("/v1/pools")).json()["items"]
        gone = await http.delete("/v1/pools/h100")

        assert (refused.status_code, refused.json()["type"]) == (409, "urn:muster:problem:conflict")
        assert made.json()["pool"]["longest_run"] == 3600
        assert made.json()["warnings"] == []
        assert [each["pool"]["selector"] for each in listed if each["pool"]["name"] == "h100"] == [{"gpu": "h100"}]
        assert gone.status_code == 204


async def test_a_window_is_set_up_and_removed(tmp_path: Path) -> None:
    when = {"begins": "2040-01-05T08:00:00Z", "ends": "2040-01-05T12:00:00+00:00"}
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        made = await http.put("/v1/windows/disks", json={**when, "nodes": ["a"], "notice": 0, "reason": "new disks"})
        nowhere = await http.put("/v1/windows/disks", json={"begins": "2040-01-05T08:00:00", "ends": when["ends"]})
        removed = await http.delete("/v1/windows/disks")

        assert (made.json()["nodes"], made.json()["notice"]) == (["a"], 0)
        assert nowhere.json()["issues"][0]["field"] == "begins"  # it says of no place what time that is
        assert removed.json() == made.json()
        assert (await http.get("/v1/windows")).json()["items"] == []


async def test_quotas_are_applied_as_from_a_file(tmp_path: Path) -> None:
    wanted = {
        "departments": {"research": {"quota": {"gpus": 8}}},
        "projects": {"default": {"department": "research", "quota": {"gpus": 4}}},
    }
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        looked = (await http.put("/v1/quotas?dry_run=true", json=wanted)).json()
        applied = (await http.put("/v1/quotas", json=wanted)).json()
        again = (await http.put("/v1/quotas", json=wanted)).json()
        wrong = await http.put("/v1/quotas", json={"projects": {"default": {"quota": {"gpu": 4}}}})

        assert (looked["applied"], applied["applied"]) == (False, True)
        assert looked["changes"] == applied["changes"]
        assert "default: quota.gpus not set -> 4 GPUs" in applied["changes"]
        assert again["changes"] == []
        assert (wrong.status_code, wrong.json()["detail"].split(":")[0]) == (400, "projects.default.quota.gpu")


async def test_many_jobs_are_stopped_at_once_each_with_its_outcome(tmp_path: Path) -> None:
    held = {"command": "true", "hold": True}
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        jobs = [(await http.post("/v1/jobs", json={"name": f"job-{n}", **held})).json()["id"] for n in range(3)]
        wish = {"action": "stop", "jobs": [*jobs, "nothing"]}
        outcomes = (await http.post("/v1/jobs/actions", json=wish)).json()["items"]

        assert [(each["job"], each["done"]) for each in outcomes] == [
            *((job, True) for job in jobs),
            ("nothing", False),
        ]
        assert outcomes[-1]["problem"]["status"] == 404
        assert {(await http.get(f"/v1/jobs/{job}")).json()["phase"] for job in jobs} == {"stopped"}


async def test_what_goes_wrong_with_every_job_is_the_answer(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        answer = await http.post("/v1/jobs/actions", json={"action": "hold", "jobs": ["nothing", "nobody"]})
        none = await http.post("/v1/jobs/actions", json={"action": "hold", "jobs": []})

        assert (answer.status_code, answer.json()["type"]) == (404, "urn:muster:problem:not-found")
        assert none.status_code == 400
