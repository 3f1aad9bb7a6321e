"""Clients that others' generators make of the OpenAPI document do what it says: one in Python, one in TypeScript."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.environments import interpreter
from tests.integration.consoles import console
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.npm_packages import installed, node

TYPESCRIPT = Path(__file__).parents[1] / "typescript_client"
MADE_WITHIN = 120.0
AS_BYTES = "content_type_overrides: {application/yaml: application/octet-stream}\n"
"""The generator for Python knows no YAML, which goes as it is."""
AS_WRITTEN = ("--default-non-nullable=false", "--output")
"""What has a default may be left out of requests."""
PROGRAM = """
import json, os
from muster_api import AuthenticatedClient
from muster_api.api.jobs import delete_job, get_job, list_jobs, submit_jobs
from muster_api.models import JobFile, Problem

client = AuthenticatedClient(os.environ["URL"], os.environ["TOKEN"])
job = JobFile.from_dict({"name": "typed", "command": "true", "hold": True})
submitted = submit_jobs.sync(client=client, body=job, queue_anyway=True)
seen = get_job.sync(submitted.id, client=client)
missing = get_job.sync("nothing", client=client)
listed = list_jobs.sync(client=client, page_size=10)
deleted = delete_job.sync_detailed(submitted.id, client=client, force=True)
print(json.dumps({
    "name": seen.spec.name, "phase": seen.phase, "missing": missing.type_,
    "listed": [each.id == submitted.id for each in listed.items], "deleted": int(deleted.status_code),
}))
"""
SEEN = {
    "name": "typed",
    "phase": "waiting",
    "missing": "urn:muster:problem:not-found",
    "listed": [True],
    "deleted": 202,
}


@pytest.fixture
def python() -> Path:
    """An environment with the generator, which takes other versions of our libraries than we do."""
    return interpreter("openapi")


async def test_a_python_client_is_made_whole_and_works(tmp_path: Path, python: Path) -> None:
    async with (
        running_fleet(tmp_path / "fleet") as fleet,
        console(fleet.address) as served,
        served.http(SECRET) as http,
    ):
        document = tmp_path / "openapi.json"
        document.write_bytes((await http.get("/v1/openapi.json")).content)

        said = await asyncio.to_thread(_make_python, python, document, tmp_path / "muster_api")
        told = await asyncio.to_thread(
            _output, str(python), "-c", PROGRAM, URL=served.url, TOKEN=SECRET, PYTHONPATH=str(tmp_path)
        )

    assert "WARNING" not in said, said
    assert json.loads(told) == SEEN


async def test_a_typescript_client_is_made_whole_and_works(tmp_path: Path) -> None:
    place = await asyncio.to_thread(_copied, tmp_path / "client")
    async with (
        running_fleet(tmp_path / "fleet") as fleet,
        console(fleet.address) as served,
        served.http(SECRET) as http,
    ):
        (place / "openapi.json").write_bytes((await http.get("/v1/openapi.json")).content)

        await asyncio.to_thread(_make_typescript, place)
        told = await asyncio.to_thread(_output, node(), str(place / "program.js"), URL=served.url, TOKEN=SECRET)

    assert json.loads(told) == SEEN


def _make_python(python: Path, document: Path, to: Path) -> str:
    """What the generator has said."""
    config = document.with_suffix(".yaml")
    config.write_text(AS_BYTES)
    program = python.with_name("openapi-python-client")
    where = ("--path", str(document), "--output-path", str(to), "--config", str(config), "--meta", "none")
    return _output(str(program), "generate", *where)


def _copied(to: Path) -> Path:
    """The packages and the program in a folder of their own."""
    made = installed(TYPESCRIPT)
    to.mkdir()
    for name in ("package.json", "program.ts"):
        shutil.copy(made / name, to)
    (to / "node_modules").symlink_to(made / "node_modules")
    return to


def _make_typescript(place: Path) -> None:
    """Make the types, and compile the program with them; what does not fit is an error."""
    modules = place / "node_modules"
    types = str(place / "api.ts")
    _output(node(), str(modules / "openapi-typescript/bin/cli.js"), str(place / "openapi.json"), *AS_WRITTEN, types)
    strict = ("--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "--target", "es2022", "--module", "nodenext")
    _output(node(), str(modules / "typescript/bin/tsc"), *strict, str(place / "program.ts"))


def _output(*command: str, **environ: Any) -> str:
    """What a program prints; it must end well."""
    done = subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, timeout=MADE_WITHIN, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"{command[:3]}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr
