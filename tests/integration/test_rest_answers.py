"""What HTTP answers is what the OpenAPI document says; what is too large, too slow or not for us is refused."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from console.api import limits, listener
from console.api.app import ROUTES
from console.api.route import Route
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.domain.notifications.subscription import Subscription, SubscriptionTarget
from tests.integration.consoles import ServedConsole, certified, console
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell

NOT_ASKED = ("/v1/projects/{project}", "/v1/images/pulls/{pull}", "/v1/live")
"""Two need what is not there; the other has no end, see test_mirror."""
ASKED = [route for route in ROUTES if route.verb == "GET" and route.path not in NOT_ASKED]

TOLD = Subscription(project="default", name="ada", target=SubscriptionTarget.MAIL, to=("ada@example.com",))

KEPT = Preset(project="default", kind=PresetKind.RESOURCES, name="small", document={"resources": {"cpus": 1}})


async def test_every_answer_is_as_the_openapi_document_says(tmp_path: Path) -> None:
    async with (
        running_fleet(tmp_path, "a") as fleet,
        console(fleet.address, token=SECRET, state=tmp_path / "console") as served,
        served.http(SECRET) as http,
    ):
        job = await fleet.run(shell("""echo '{"step": 1, "loss": 0.5}'; exit 3""", gpus=1))
        waits = await fleet.client.jobs.submit(shell("true", hold=True))
        await fleet.client.notifications.put(TOLD)
        await fleet.client.presets.put(KEPT)
        document = (await http.get("/v1/openapi.json")).json()
        jsonschema.Draft202012Validator.check_schema(document["components"]["schemas"]["JobView"])
        names = {"node": "a", "project": "default", "subscription": TOLD.name}
        names |= {"preset_kind": KEPT.kind, "preset": KEPT.name}
        for route in ASKED:
            for each in (job.id, waits.id) if "{job}" in route.path else ("",):
                answer = await http.get(route.path.format(job=each, **names), headers={"Accept": "application/json"})
                assert answer.status_code == 200, answer.text
                if answer.headers["content-type"] == "application/json":
                    jsonschema.validate(answer.json(), schema_of(document, route, "200"))
        missing = await http.get("/v1/jobs/nothing")
        jsonschema.validate(missing.json(), within(document, {"$ref": "#/components/schemas/Problem"}))


def schema_of(document: Mapping[str, Any], route: Route, status: str) -> Mapping[str, Any]:
    content = document["paths"][route.path][route.verb.lower()]["responses"][status]["content"]
    return within(document, content["application/json"].get("schema", {}))


def within(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema that finds what it refers to."""
    return {**schema, "components": document["components"]}


async def test_bodies_that_are_too_large_are_refused_whether_they_say_so_or_not(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        large = b"x" * (limits.MAX_BODY + 1)

        async def pieces() -> Any:
            for start in range(0, len(large), 1 << 16):
                yield large[start : start + (1 << 16)]

        for body in (large, pieces()):
            answer = await http.post("/v1/jobs", content=body, headers={"Content-Type": "application/yaml"})
            assert (answer.status_code, answer.json()["type"]) == (413, "urn:muster:problem:too-large")


async def test_names_that_are_not_ours_are_not_answered(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        answer = await http.get("/v1/whoami", headers={"Host": f"evil.example:{served.port}"})
        assert answer.status_code == 421
        assert (await http.get("/v1/whoami", headers={"Host": f"localhost:{served.port}"})).status_code == 200


async def test_every_answer_says_that_nobody_keeps_it_and_no_page_shows_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        for path in ("/v1/whoami", "/v1/nothing", "/healthz"):
            headers = (await http.get(path)).headers
            assert headers["cache-control"] == "no-store"
            assert headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert "server" not in headers


async def spoken(served: ServedConsole, *pieces: bytes) -> bytes:
    """What is answered to these bytes until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (listener.MAX_HEAD + 1), b"400"),
        (b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"GET /v1/whoami HTTP/1.1\r\nConnection: close\r\n\r\n", b"400"),
    ],
)
async def test_requests_that_are_none_are_refused(tmp_path: Path, said: bytes, answered: bytes) -> None:
    async with running_fleet(tmp_path) as fleet, console(fleet.address) as served:
        assert (await spoken(served, said)).split(b" ", 2)[1] == answered


async def test_it_speaks_tls_with_the_certificate_that_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    files = certified(tmp_path)
    async with (
        running_fleet(tmp_path / "fleet") as fleet,
        console(fleet.address, cert=files["cert"], key=files["key"], believed=files["authority"]) as served,
        served.http(SECRET) as http,
    ):
        assert served.url.startswith("https://")
        assert (await http.get("/v1/whoami")).status_code == 200
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection("127.0.0.1", served.port, ssl=ssl.create_default_context())
