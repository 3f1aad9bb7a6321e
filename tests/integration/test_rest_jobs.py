"""Jobs over HTTP, with a real coordinator and agent: submitted, followed, changed, stopped."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from muster.domain.jobs.lifecycle import JobPhase, State
from tests.integration.consoles import console
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell

YAML = {"Content-Type": "application/yaml"}
HELLO = "name: hello\nworkers: 2\ncommand: echo hello from $MUSTER_RANK\nresources: {cpus: 0.1}\n"
WAITS = "name: waits\ncommand: exec sleep 60\nhold: true\n"


async def submitted(http: httpx.AsyncClient, text: str, **query: str) -> Any:
    answer = await http.post("/v1/jobs", content=text, headers=YAML, params=query)
    assert answer.status_code == 201, answer.text
    return answer.json()


def events(text: str) -> list[dict[str, str]]:
    """Server-sent events, each with its fields."""
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


async def test_a_job_file_is_run_and_its_output_read(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        answer = await http.post("/v1/jobs", content=HELLO, headers=YAML)
        job = answer.json()
        assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/jobs/{job['id']}")
        assert (job["spec"]["name"], job["spec"]["workers"]) == ("hello", 2)

        printed = await http.get(f"/v1/jobs/{job['id']}/logs", params={"follow": True})
        assert sorted(printed.text.splitlines()) == ["[0] hello from 0", "[1] hello from 1"]
        ended = await fleet.client.jobs.wait(job["id"])
        assert ended.phase is JobPhase.SUCCEEDED
        shown = (await http.get("/v1/jobs/hello")).json()
        assert (shown["phase"], shown["attempts"][0]["executions"][1]["node"]) == ("succeeded", "a")


async def test_lines_come_as_json_where_that_is_accepted(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        job = await fleet.run(shell("echo one; echo two >&2"))
        answer = await http.get(f"/v1/jobs/{job.id}/logs", headers={"Accept": "application/x-ndjson"})
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert {(line["stream"], line["text"]) for line in lines} == {("stdout", "one"), ("stderr", "two")}


async def test_a_stream_of_events_is_taken_up_after_the_last_that_was_seen(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        job = await fleet.run(shell("exit 3"))
        wants = {"Accept": "text/event-stream"}
        whole = await http.get(f"/v1/jobs/{job.id}/events", params={"follow": True}, headers=wants)
        told = events(whole.text)
        assert told[-1]["event"] == "end"
        kinds = [json.loads(event["data"])["kind"] for event in told[:-1]]
        assert (kinds[0], kinds[-1]) == ("submitted", "failed")

        seen = {**wants, "Last-Event-ID": told[3]["id"]}
        rest = await http.get(f"/v1/jobs/{job.id}/events", params={"follow": True}, headers=seen)
        assert events(rest.text) == told[4:]


async def test_numbers_that_a_job_prints_are_read(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        job = await fleet.run(shell("""for s in 1 2 3; do echo "{\\"step\\": $s, \\"loss\\": 0.$s}"; done"""))
        await http.get(f"/v1/jobs/{job.id}/logs", params={"follow": True})  # all lines have come
        (rank,) = (await http.get(f"/v1/jobs/{job.id}/points", params={"key": "loss"})).json()["items"]
        assert [point["values"]["loss"] for point in rank["points"]] == [0.1, 0.2, 0.3]


async def test_a_job_that_runs_is_stopped(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        job = await fleet.client.jobs.submit(shell("exec sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        answer = await http.post(f"/v1/jobs/{job.id}/stop")
        assert (answer.status_code, answer.json()["phase"]) == (200, "stopping")
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.STOPPED


@asynccontextmanager
async def quiet(directory: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A caller of a fleet of one node, whose jobs are held."""
    async with running_fleet(directory, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        yield http


async def test_a_request_that_is_sent_again_makes_no_second_job(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        once = {**YAML, "Idempotency-Key": "nightly-2026-11-27"}
        first = await http.post("/v1/jobs", content=WAITS, headers=once)
        second = await http.post("/v1/jobs", content=WAITS, headers=once)
        assert first.json()["id"] == second.json()["id"]
        assert len((await http.get("/v1/jobs")).json()["items"]) == 1
        other = await http.post("/v1/jobs", content=WAITS.replace("waits", "other"), headers=once)
        assert (other.status_code, other.json()["type"]) == (409, "urn:muster:problem:conflict")


async def test_several_jobs_are_accepted_together_or_not_at_all(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        both = await http.post("/v1/jobs", content=f"{WAITS}---\n{WAITS.replace('waits', 'more')}", headers=YAML)
        assert [each["name"] for each in both.json()["items"]] == ["waits", "more"]
        one_bad = [{"name": "good", "command": "true"}, {"name": "bad", "command": "true", "resources": {"gpus": 9}}]
        refused = await http.post("/v1/jobs", json=one_bad)
        problem = refused.json()
        assert (refused.status_code, problem["type"]) == (422, "urn:muster:problem:jobs-refused")
        assert len((await http.get("/v1/jobs")).json()["items"]) == 2


async def test_faults_of_a_job_file_have_their_line_and_column(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        answer = await http.post(
            "/v1/jobs", content="name: x\ncommand: 'true'\nworkers: two\nwrkdir: /\n", headers=YAML
        )
        issues = answer.json()["issues"]
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        assert [(each["line"], each["column"], each["field"]) for each in issues] == [
            (3, 10, "workers"),
            (4, 1, "wrkdir"),
        ]
        assert issues[1]["suggestion"] == "workdir"
        as_json = await http.post(
            "/v1/jobs", content='{\n\t"name": "x",\n\t"workers": "two"\n}', headers={"Content-Type": "application/json"}
        )
        assert [each["line"] for each in as_json.json()["issues"] if each["field"] == "workers"] == [3]


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        ("name: x", "text/plain", 415, "a job file is application/yaml or application/json"),
        ("name: x", "", 415, "of no type"),
        ("", "application/yaml", 422, "is empty"),
        ("[]", "application/json", 422, "is a list without a job"),
        ("[1]", "application/json", 422, "has at [0] no map"),
        ("{", "application/json", 422, "is not valid JSON"),
        ("[" * 5000, "application/json", 422, "is not valid JSON"),
        ("name: [", "application/yaml", 422, "is not valid YAML"),
        (b"\xff\xfe", "application/yaml", 422, "is not UTF-8 text"),
        ("name: x\ncommand: 'true'\ncode: .\n", "application/yaml", 422, "`muster upload` sends one"),
        ("name: x\ncommand: 'true'\nfiles: [{path: a, source: /etc/passwd}]", "application/yaml", 422, "source"),
    ],
)
async def test_a_body_that_is_no_job_file_is_refused_in_words(
    tmp_path: Path, body: str | bytes, kind: str, status: int, words: str
) -> None:
    async with quiet(tmp_path) as http:
        for path in ("/v1/jobs", "/v1/check"):
            answer = await http.post(path, content=body, headers={"Content-Type": kind} if kind else {})
            assert (answer.status_code, words in answer.text) == (status, True), answer.text
        assert (await http.get("/v1/jobs")).json()["items"] == []


async def test_a_job_file_is_only_checked(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        answer = await http.post("/v1/check", content=WAITS, headers=YAML)
        assert answer.json()["items"][0]["name"] == "waits"
        dry = await http.post("/v1/jobs", content=WAITS, headers=YAML, params={"dry_run": True})
        assert (dry.status_code, dry.json()["id"]) == (200, "")
        assert (await http.get("/v1/jobs")).json()["items"] == []


async def test_pages_of_jobs_lead_to_all_of_them(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        ids = [(await submitted(http, WAITS))["id"] for _ in range(5)]
        found, page = list[str](), ""
        while not found or page:
            answer = (await http.get("/v1/jobs", params={"page_size": 2, "page": page})).json()
            found += [each["id"] for each in answer["items"]]
            page = answer["next"]
        assert found == ids[::-1]


async def test_jobs_are_found_by_what_they_have(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        labelled = await submitted(http, f"{WAITS}labels: {{paper: icml}}\n")
        await submitted(http, WAITS.replace("waits", "others"))

        async def names(**query: str) -> list[str]:
            answer = await http.get("/v1/jobs", params=query)
            return [each["spec"]["name"] for each in answer.json()["items"]]

        assert await names(label="paper=icml") == ["waits"]
        assert await names(name="ther") == ["others"]
        assert await names(phase="running") == []
        assert await names(owner="local") == ["others", "waits"]
        bad = await http.get("/v1/jobs", params={"label": "paper"})
        assert (bad.status_code, "KEY=VALUE" in bad.text) == (400, True)
        assert (await http.get(f"/v1/jobs/{labelled['id']}/file")).json()["labels"] == {"paper": "icml"}


async def test_a_job_is_changed_held_released_and_forgotten(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        job = (await submitted(http, WAITS))["id"]
        changed = await http.patch(f"/v1/jobs/{job}", json={"priority": 7, "run": 3600})
        assert (changed.json()["spec"]["priority"], changed.json()["spec"]["timeouts"]["run"]) == (7, "1h")
        wrong = await http.patch(f"/v1/jobs/{job}", json={"priority": 7, "image": "x"})
        assert (wrong.status_code, wrong.json()["issues"][0]["field"]) == (400, "image")
        assert (await http.post(f"/v1/jobs/{job}/hold")).json()["phase"] == "waiting"
        assert "held" in (await http.get(f"/v1/jobs/{job}/why")).text
        assert (await http.post(f"/v1/jobs/{job}/unhold")).json()["phase"] in {"queued", "preparing"}
        again = await http.post(f"/v1/jobs/{job}/resubmit")
        assert (again.status_code, again.json()["spec"]["priority"]) == (201, 7)
        live = await http.delete(f"/v1/jobs/{job}")
        assert live.status_code == 409
        assert (await http.delete(f"/v1/jobs/{job}", params={"force": True})).status_code == 202
        held = again.json()["id"]
        await http.post(f"/v1/jobs/{held}/stop")
        assert (await http.delete(f"/v1/jobs/{held}")).status_code == 204
        gone = await http.get(f"/v1/jobs/{held}")
        assert (gone.status_code, gone.json()["type"]) == (404, "urn:muster:problem:not-found")


async def test_who_knows_a_value_already_gets_no_body(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        job = (await submitted(http, WAITS))["id"]
        tag = (await http.get(f"/v1/jobs/{job}")).headers["etag"]
        same = await http.get(f"/v1/jobs/{job}", headers={"If-None-Match": tag})
        assert (same.status_code, same.content) == (304, b"")
        await http.patch(f"/v1/jobs/{job}", json={"priority": 9})
        assert (await http.get(f"/v1/jobs/{job}", headers={"If-None-Match": tag})).status_code == 200


async def test_a_coordinator_that_is_away_is_said_to_be_and_streams_go_on(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        job = await fleet.client.jobs.submit(shell("echo begins; exec sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        wanted = http.stream("GET", f"/v1/jobs/{job.id}/events", params={"follow": True})
        async with wanted as answer:
            lines = answer.aiter_lines()
            kinds = [json.loads(await anext(lines))["kind"]]
            await fleet.stop_coordinator()
            away = await http.get(f"/v1/jobs/{job.id}")
            assert (away.status_code, away.json()["type"]) == (503, "urn:muster:problem:unavailable")
            await fleet.start_coordinator()
            await fleet.connected("a", 2)
            await http.post(f"/v1/jobs/{job.id}/stop")
            kinds += [json.loads(line)["kind"] async for line in lines]
        assert (kinds[0], kinds[-1]) == ("submitted", "stopped")
        assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("", {"attempt": 2**40}),
        ("/logs", {"attempt": 0}),
        ("/logs", {"rank": -1}),
        ("/logs", {"rank": 10_000}),
        ("/logs", {"tail": 2**32}),
        ("/points", {"rank": 2**70}),
        ("/points", {"most": 50_001}),
        ("/events", {"after": 2**64}),
        ("/events", {"after": -1}),
    ],
)
async def test_numbers_that_cannot_be_are_refused(tmp_path: Path, path: str, query: dict[str, int]) -> None:
    async with quiet(tmp_path) as http:
        job = (await submitted(http, WAITS))["id"]
        answer = await http.get(f"/v1/jobs/{job}{path}", params=query)
        assert (answer.status_code, answer.json()["issues"][0]["in"]) == (400, "query"), answer.text


async def test_what_goes_wrong_at_the_beginning_of_a_stream_has_its_status(tmp_path: Path) -> None:
    async with quiet(tmp_path) as http:
        job = (await submitted(http, WAITS))["id"]
        for accept in ("text/plain", "application/x-ndjson", "text/event-stream"):
            answer = await http.get(f"/v1/jobs/{job}/logs", params={"attempt": 7}, headers={"Accept": accept})
            assert (answer.status_code, answer.json()["type"]) == (404, "urn:muster:problem:not-found")
