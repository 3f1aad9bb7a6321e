"""Presets from one end to the other: kept, named by job files, and joined whichever door a job comes through."""

import json
from pathlib import Path

import pytest

from muster.client.client import Client
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Access
from muster.domain.fleet.policies.policy import PolicyRule
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.jobfile.presets import described_jobs
from tests.integration.consoles import console
from tests.integration.secured import muster, secured

JOB = """\
name: train
project: vision
use: {environment: torch, resources: node@1}
command: "true"
workers: 2
env: {B: "3"}
"""


async def put(client: Client, kind: PresetKind, name: str, project: str, **document: object) -> None:
    await client.presets.put(Preset(project=project, kind=kind, name=name, document=document))


async def test_the_same_job_comes_of_a_file_that_names_presets_through_every_door(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        ada = await fleet.user("ada", {"vision": Access.MEMBER})
        await put(admin, PresetKind.ENVIRONMENT, "torch", "vision", env={"A": "1", "B": "2"})
        await put(admin, PresetKind.RESOURCES, "node", "*", resources={"cpus": 2})
        await put(admin, PresetKind.RESOURCES, "node", "*", resources={"cpus": 64})

        tried = await muster(fleet, ada, "submit", str(file), "--dry-run", "--queue-anyway")
        typed = await muster(fleet, ada, "submit", str(file), "--queue-anyway", "-o", "json")
        async with fleet.client(ada) as client:
            ((_, document),) = described_jobs(JOB, "job.yaml")
            called = await client.jobs.submit(document, queue_anyway=True)
            (of_many,) = await client.jobs.submit_many([document], queue_anyway=True)
            specs = [called.spec, (await client.jobs.get(of_many)).spec]
        async with console(fleet.doors.clients, fleet.authority.certificate) as served, served.http(ada) as http:
            kind = {"Content-Type": "application/yaml"}
            sent = await http.post("/v1/jobs", content=JOB, params={"queue_anyway": True}, headers=kind)
            checked = await http.post("/v1/check", content=JOB, params={"queue_anyway": True}, headers=kind)
            wrong = await http.post("/v1/jobs", content=JOB.replace("workers", "worker"), headers=kind)
        shown = await muster(fleet, ada, "show", called.id)

    assert tried.exit_code == typed.exit_code == 0, (tried.output, typed.output)
    assert "env.A: from environment torch@1 of project vision" in tried.output
    assert "resources.cpus: from resources node@1 of the fleet" in tried.output
    assert "env.B" not in tried.output
    (role,) = called.spec.roles
    assert (dict(role.env), role.count, role.resources.cpu_millis) == ({"A": "1", "B": "3"}, 2, 2000)
    assert specs == [called.spec] * 2
    assert json.loads(typed.stdout)["spec"] == sent.json()["spec"] == checked.json()["items"][0], checked.text
    assert [str(each) for each in called.presets] == [
        "environment torch@1 of project vision",
        "resources node@1 of the fleet",
    ]
    assert "resources node@1 of the fleet" in shown.output
    assert wrong.status_code == 422
    assert wrong.json()["issues"] == [
        {
            "line": 5,
            "column": 1,
            "field": "worker",
            "message": 'unknown key; did you mean "workers"?',
            "suggestion": None,
        }
    ]


async def test_what_is_wrong_is_told_where_it_stands_and_policies_hold_for_what_comes_of_it(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        ada = await fleet.user("ada", {"vision": Access.MEMBER})
        await put(admin, PresetKind.RESOURCES, "node", "vision", resources={"cpus": 2})
        rules = {"resources.cpus": PolicyRule(max="2", edit=False), "env": PolicyRule(add=False)}
        await admin.projects.set_policy("vision", rules)

        said = {}
        for name, more in (
            ("none", "use: {environment: torch}"),
            ("cpus", "use: {resources: node}\nresources: {cpus: 1.5}"),
        ):
            file.write_text(f'name: a\nproject: vision\ncommand: "true"\n{more}\n')
            said[name] = await muster(fleet, ada, "submit", str(file), "--queue-anyway")
        file.write_text('name: a\nproject: vision\ncommand: "true"\nuse: {resources: node}\n')
        taken = await muster(fleet, ada, "submit", str(file), "--queue-anyway")
        await admin.projects.set_policy("vision", {"resources.cpus": PolicyRule(max="1")})
        async with fleet.client(ada) as client:
            ((_, document),) = described_jobs(file.read_text(), "job.yaml")
            with pytest.raises(InvalidJobError) as refused:
                await client.jobs.submit(document, queue_anyway=True)

    assert f"{file}:4:20: use.environment: neither project vision nor the fleet has" in said["none"].output
    assert f"{file}:5:19: resources.cpus: is not for job files" in said["cpus"].output
    assert taken.exit_code == 0, taken.output
    assert str(refused.value) == (
        "resources.cpus: 2 is not allowed; at most 1 is (rule max of the policy of project vision) "
        "(from resources node@1 of project vision)"
    )
