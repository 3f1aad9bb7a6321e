"""The SDK against a real coordinator and real nodes, also when the coordinator comes and goes."""

import asyncio
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

from muster import Client
from muster.cli.local.fleet import FleetPlan, client_of, local_fleet
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from tests.integration.programs import coordinator

SPEC = JobSpec(name="hello", roles=(Role(count=2, command=("/bin/sh", "-c", "echo I am $RANK; echo bye >&2")),))


async def test_a_watch_outlives_a_restart_of_the_coordinator(tmp_path: Path) -> None:
    async with AsyncExitStack() as running:
        login = await running.enter_async_context(coordinator(tmp_path))
        async with client_of(login) as client, asyncio.TaskGroup() as tasks:
            job = await client.jobs.submit(SPEC, queue_anyway=True)
            seen: asyncio.Queue[JobPhase] = asyncio.Queue()
            tasks.create_task(note_phases(client, job, seen), name="watch")
            assert await seen.get() is JobPhase.QUEUED

            await running.aclose()
            async with coordinator(tmp_path, login.address), client_of(login) as another:
                await another.jobs.stop(job.id)
                # What it waits for may be told in other words meanwhile.
                while (phase := await seen.get()) is JobPhase.QUEUED:
                    pass
                assert phase is JobPhase.STOPPED


async def note_phases(client: Client, job: JobView, seen: asyncio.Queue[JobPhase]) -> None:
    async with aclosing(client.jobs.watch(job.id)) as views:
        async for view in views:
            seen.put_nowait(view.phase)


async def test_a_job_is_followed_from_its_submission_to_its_end(tmp_path: Path) -> None:
    plan = FleetPlan(directory=tmp_path, nodes=2, listen="127.0.0.1:0", docker=False)
    async with local_fleet(plan) as fleet, client_of(fleet.login) as client:
        job = await client.jobs.submit(SPEC)
        lines = [(line.rank, line.stream, line.text) async for line in client.jobs.logs(job.id, follow=True)]
        ended = await client.jobs.wait(job.id)

    assert sorted(lines) == [
        (0, "stderr", b"bye"),
        (0, "stdout", b"I am 0"),
        (1, "stderr", b"bye"),
        (1, "stdout", b"I am 1"),
    ]
    assert (ended.phase, ended.failure) == (JobPhase.SUCCEEDED, None)
    assert [node.name for node in fleet.nodes] == ["local-1", "local-2"]
