"""Owners of jobs: their names and labels, and lists of one person, project or label."""

from pathlib import Path
from typing import Any

import grpc

from coordinator.rpc.clients.jobs import MAX_DOCUMENT
from muster.client.client import Client
from muster.domain.fleet.access import Access
from muster.domain.jobs.job import JobSpec
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import jobs_pb2, jobs_pb2_grpc
from tests.integration.jobs import shell
from tests.integration.secured import secured


def job(name: str, project: str, **labels: str) -> JobSpec:
    return shell("true", name=name, project=project, labels=labels)


async def names(client: Client, **conditions: Any) -> list[str]:
    return [each.spec.name async for each in client.jobs.list(**conditions)]


async def test_jobs_are_listed_by_owner_project_and_label_of_what_the_caller_may_see(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        ada = await fleet.user("ada", {"vision": Access.MEMBER, "speech": Access.MEMBER})
        bea = await fleet.user("bea", {"vision": Access.MEMBER})
        async with fleet.client(ada) as a, fleet.client(bea) as b:
            first = await a.jobs.submit(job("one", "vision", paper="icml"), queue_anyway=True)
            await b.jobs.submit(job("two", "vision", paper="icml", run="2"), queue_anyway=True)
            await a.jobs.submit(job("three", "speech", run="2"), queue_anyway=True)

            assert (first.owner, first.sequence) == ("ada", 1)
            assert dict((await b.jobs.get(first.id)).spec.labels) == {"paper": "icml"}
            assert await names(a) == ["three", "two", "one"]
            assert await names(a, mine=True) == ["three", "one"]
            assert await names(b, mine=True, owners=["ada"]) == ["two", "one"]
            assert await names(a, projects=["speech"]) == ["three"]
            assert await names(b, projects=["speech"]) == []
            assert await names(b, owners=["ada"], projects=["speech", "vision"]) == ["one"]
            assert await names(admin, labels={"run": "2"}) == ["three", "two"]
            assert await names(admin, labels={"run": "2", "paper": "icml"}) == ["two"]
            assert await names(admin, mine=True) == []
            assert await names(admin, owners=["ada"], labels={"paper": "icml"}, limit=1) == ["one"]


async def test_the_values_of_a_job_file_are_the_job_up_to_their_limit(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        shown = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
        async with open_channel(fleet.doors.clients, shown) as channel:
            stub: Any = jobs_pb2_grpc.JobServiceStub(channel)
            document = '{"name": "small", "command": "true", "project": "default"}'
            request = jobs_pb2.SubmitRequest(queue_anyway=True, document=document)
            assert (await stub.Submit(request, metadata=shown.metadata)).job.spec.name == "small"
            request.document = "x" * (MAX_DOCUMENT + 1)
            call = stub.Submit(request, metadata=shown.metadata)
            assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "the document of the job has 3145729 bytes" in await call.details()
