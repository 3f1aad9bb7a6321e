"""Code of jobs in a fleet with TLS: sent to its depot, and fetched by an agent that has joined."""

import asyncio
from pathlib import Path

from muster.domain.data.code import JobCode
from muster.domain.fleet.access import Access
from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.secured import joining, secured, until_ready

LIMIT = 120.0


def bringing(folder: Path) -> JobSpec:
    role = Role(
        command=("/bin/sh", "-c", "cat words.txt"),
        code=JobCode(folder=str(folder)),
        resources=Resources(cpu_millis=100),
    )
    return JobSpec(name="brings-code", project="vision", roles=(role,))


def folder_in(directory: Path) -> Path:
    directory.mkdir()
    (directory / "words.txt").write_text("over TLS\n")
    return directory


async def test_an_agent_that_has_joined_fetches_the_code_of_its_jobs(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "trainer")
    async with asyncio.timeout(LIMIT), secured(tmp_path / "fleet", beside=("depot",)) as fleet:
        token = await fleet.user("anna", {"vision": Access.MEMBER})
        async with joining(fleet, "gpu-1", await fleet.join_token()), fleet.client(token) as client:
            async with fleet.client() as admin:
                await until_ready(admin, "gpu-1")
            job = await client.jobs.submit(await client.data.with_code(bringing(folder)))
            ended = await client.jobs.wait(job.id)
            assert ended.phase is JobPhase.SUCCEEDED, ended
            assert [line.text async for line in client.jobs.logs(job.id)] == [b"over TLS"]
    log = (tmp_path / "fleet" / "depot.log").read_text()
    assert all(secret not in log for secret in fleet.secrets)
