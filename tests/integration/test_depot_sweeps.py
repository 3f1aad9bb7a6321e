"""Coordinator and depot as programs: what no job names goes, and no job loses its code by that."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from coordinator.clock import wall_time
from coordinator.depot.sweeping import UNNAMED_KEPT
from coordinator.store.directory import StateDirectory
from muster.client.client import Client
from muster.domain.data.code import JobCode
from muster.domain.data.depot_use import DepotUse
from muster.domain.data.upload import UploadedFolder
from muster.domain.errors import ExhaustedError, InvalidJobError, JobsRefusedError, UnavailableError
from muster.domain.event import FleetEventKind
from muster.domain.jobs.job import JobSpec, Role
from muster.rpc.channel import Credentials
from tests.integration.depots import age_all, depot, uploaded
from tests.integration.programs import Coordinator, coordinator_program
from tests.integration.relays import until

LIMIT = 90.0


def folder_in(directory: Path, *contents: str) -> Path:
    directory.mkdir()
    for number, content in enumerate(contents):
        (directory / f"{number}.py").write_text(content)
    return directory


def job_of(sent: UploadedFolder) -> JobSpec:
    code = JobCode(tree=sent.tree, size=sent.size)
    return JobSpec(name="job", roles=(Role(command=("true",), code=code),))


def client_of(served: Coordinator) -> Client:
    return Client(served.login.address, Credentials(token=served.login.token))


async def looked_through(client: Client) -> DepotUse:
    """What the depot holds once it has looked through everything."""
    while True:
        try:
            return await client.data.storage()
        except UnavailableError:
            await asyncio.sleep(0.05)


async def removal_told(client: Client) -> str:
    """What the fleet is told of the first removal."""
    async with aclosing(client.fleet.events(follow=True)) as events:
        return await anext(each.text async for each in events if each.kind is FleetEventKind.DEPOT_SWEPT)


async def test_what_no_job_names_goes_and_the_fleet_is_told(tmp_path: Path) -> None:
    mine, other = folder_in(tmp_path / "a", "shared", "mine"), folder_in(tmp_path / "b", "shared", "other")
    state = StateDirectory(tmp_path / "coordinator").path
    async with coordinator_program(tmp_path) as served, asyncio.timeout(LIMIT), client_of(served) as client:
        async with depot(state):
            named, unnamed = await uploaded(client, mine), await uploaded(client, other)
            job = await client.jobs.submit(job_of(named), queue_anyway=True)
        objects = age_all(state)
    async with coordinator_program(tmp_path) as served, asyncio.timeout(LIMIT), client_of(served) as client:
        async with depot(state):
            use = await looked_through(client)
            assert (use.removed_objects, use.objects, use.unnamed_objects) == (2, 3, 0)
            assert use.projects["default"].trees == 1
            assert use.projects["default"].bytes == use.bytes == len("sharedmine") + named.size
            assert objects.size(named.tree) == named.size
            assert objects.size(unnamed.tree) is None
            assert (await removal_told(client)).startswith("2 objects")

            with pytest.raises(InvalidJobError, match=f"does not have the tree {unnamed.tree}"):
                await client.jobs.submit(job_of(unnamed), queue_anyway=True)
            with pytest.raises(JobsRefusedError, match=unnamed.tree):
                await client.jobs.submit_many([job_of(named), job_of(unnamed)], queue_anyway=True)
            assert (await client.data.upload(other)).new == 2
            await client.jobs.submit(job_of(unnamed), queue_anyway=True)
            await client.jobs.delete(job.id, force=True)
        age_all(state)
        async with depot(state):
            await until(lambda: objects.size(named.tree) is None)
            assert objects.size(unnamed.tree) == unnamed.size


async def test_a_job_that_names_an_old_tree_has_it_from_then_on(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "a", *map(str, range(20)))
    state = StateDirectory(tmp_path / "coordinator").path
    async with coordinator_program(tmp_path) as served, asyncio.timeout(LIMIT), client_of(served) as client:
        async with depot(state) as program:
            sent = await uploaded(client, folder)
            await looked_through(client)
            objects = age_all(state)
            await client.jobs.submit(job_of(sent), queue_anyway=True)  # nobody has sent it again
            since = (wall_time() - UNNAMED_KEPT).timestamp()
            assert all(found.st_mtime > since for _, found in objects.all())
            program.kill()
            await program.wait()
        async with depot(state):
            await uploaded(client, folder)
            assert len(list(objects.all())) == 21


async def test_while_no_depot_is_there_jobs_with_code_are_refused(tmp_path: Path) -> None:
    async with coordinator_program(tmp_path) as served, asyncio.timeout(LIMIT), client_of(served) as client:
        job = JobSpec(name="job", roles=(Role(command=("true",), code=JobCode(tree="ab" * 32, size=10)),))
        with pytest.raises(UnavailableError, match="no depot is connected"):
            await client.jobs.submit(job, queue_anyway=True)


async def test_an_upload_that_a_project_may_not_keep_is_refused_until_an_admin_raises_its_limit(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "a", "more than ten bytes")
    state = StateDirectory(tmp_path / "coordinator").path
    async with (
        coordinator_program(tmp_path) as served,
        asyncio.timeout(LIMIT),
        depot(state),
        client_of(served) as client,
    ):
        await looked_through(client)
        await client.projects.limit_storage("default", 10)
        with pytest.raises(ExhaustedError, match="muster projects storage default --limit SIZE"):
            await uploaded(client, folder)
        assert (await client.data.storage()).projects["default"].limit == 10
        await client.projects.limit_storage("default", 1000)
        assert (await client.data.upload(folder)).new == 2
        assert (await client.projects.get("default")).storage == 1000
