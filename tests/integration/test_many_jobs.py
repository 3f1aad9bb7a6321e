"""Many jobs with one call: all of them or none, and for each what holds for a job by itself."""

from pathlib import Path

import grpc
import pytest

from muster.domain.errors import (
    ConflictError,
    InvalidJobError,
    JobsRefusedError,
    PermissionDeniedError,
    UnknownNameError,
)
from muster.domain.fleet.access import Access
from muster.domain.jobs.job import InlineFile, JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.secret_use import SecretUse
from muster.rpc.channel import open_channel
from muster.rpc.v1 import jobs_pb2, jobs_pb2_grpc
from muster.wire import job_spec_to_wire
from muster.wire.checks import MAX_JOBS
from tests.integration.fleet import SHOWN, Fleet, running_fleet
from tests.integration.jobs import shell
from tests.integration.secured import secured


def request(*specs: JobSpec, key: str = "", dry_run: bool = False) -> jobs_pb2.SubmitManyRequest:
    jobs = [
        jobs_pb2.SubmitRequest(
            spec=job_spec_to_wire(spec),
            queue_anyway=True,
            dry_run=dry_run,
            idempotency_key=f"{key}{place}" if key else "",
        )
        for place, spec in enumerate(specs)
    ]
    return jobs_pb2.SubmitManyRequest(jobs=jobs)


async def ask(fleet: Fleet, message: jobs_pb2.SubmitManyRequest) -> jobs_pb2.SubmitManyResponse:
    async with open_channel(fleet.address, SHOWN) as channel:
        return await jobs_pb2_grpc.JobServiceStub(channel).SubmitMany(message, metadata=SHOWN.metadata)


async def test_all_are_accepted_in_order_run_and_outlive_the_coordinator(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        ids = await fleet.client.jobs.submit_many([shell(f"exit {code}", name=f"job-{code}") for code in range(3)])
        ended = [await fleet.client.jobs.wait(job) for job in ids]
        assert [job.spec.name for job in ended] == ["job-0", "job-1", "job-2"]
        assert [job.phase for job in ended] == [JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.FAILED]
        waiting = await fleet.client.jobs.submit_many([shell("true")] * 2, queue_anyway=True)
        await fleet.stop_coordinator()
        await fleet.start_coordinator()
        assert {job.id async for job in fleet.client.jobs.list()} == {*ids, *waiting}
        assert await fleet.client.jobs.submit_many([]) == ()


async def test_a_list_that_is_longer_than_one_call_takes_goes_in_parts(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        ids = await fleet.client.jobs.submit_many([shell("true")] * (2 * MAX_JOBS + 1), queue_anyway=True)
        assert len(set(ids)) == 2 * MAX_JOBS + 1
        assert [job.id async for job in fleet.client.jobs.list()] == list(reversed(ids))


async def test_large_jobs_go_in_parts_that_are_not_too_large(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        large = shell("true", files=(InlineFile(path="x", content=b"x" * (1 << 20)),))
        assert len(set(await fleet.client.jobs.submit_many([large] * 9, queue_anyway=True))) == 9


async def test_every_refused_one_is_named_with_its_own_reason_and_nothing_is_accepted(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        jobs = [
            shell("true", name="good"),
            shell("true", name="greedy", gpus=60),
            shell("true", name="secretive", secrets=(SecretUse(secret="none"),)),
            shell("true", name="heavy", files=(InlineFile(path="x", content=b"x" * (5 << 20)),)),
        ]
        for dry_run in (False, True):
            with pytest.raises(JobsRefusedError) as refused:
                await fleet.client.jobs.submit_many(jobs[:3], dry_run=dry_run)
            assert {place: type(error) for place, error in refused.value.refused.items()} == {
                1: ConflictError,
                2: InvalidJobError,
            }
            assert refused.value.accepted == ()
            assert str(refused.value).startswith(
                "of 3 jobs none was accepted:\njob 2 (greedy): no node could ever run it: "
            )
            assert "\njob 3 (secretive): roles[0].secrets[0].secret: project default has no secret" in str(
                refused.value
            )
        with pytest.raises(
            JobsRefusedError,
            match=r"job 1 \(heavy\): roles\[0\].files\[0\]: makes the files of the job larger than 1024 KiB in all",
        ):
            await fleet.client.jobs.submit_many(jobs[3:])
        assert [job async for job in fleet.client.jobs.list()] == []
        assert await fleet.client.jobs.submit_many(jobs[:1] * 2, dry_run=True) == ("", "")
        assert [job async for job in fleet.client.jobs.list()] == []


async def test_what_was_accepted_before_a_refused_part_is_told(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        with pytest.raises(JobsRefusedError) as refused:
            await fleet.client.jobs.submit_many([*[shell("true")] * MAX_JOBS, shell("true", gpus=60)])
        assert list(refused.value.refused) == [MAX_JOBS]
        assert set(refused.value.accepted) == {job.id async for job in fleet.client.jobs.list()}
        assert str(refused.value).startswith("of 1001 jobs the first 1000 were accepted:\njob 1001 (")


async def test_the_same_keys_are_the_same_jobs(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        first = await ask(fleet, request(*[shell("true")] * 3, key="k"))
        again = await ask(fleet, request(*[shell("true")] * 4, key="k"))
        tried = await ask(fleet, request(*[shell("true")] * 5, key="k", dry_run=True))
        assert list(again.ids[:3]) == list(first.ids)
        assert list(tried.ids) == [*again.ids, ""]
        assert [job.id async for job in fleet.client.jobs.list()] == list(reversed(again.ids))


@pytest.mark.parametrize("count", [0, MAX_JOBS + 1])
async def test_none_and_too_many_are_refused(tmp_path: Path, count: int) -> None:
    async with running_fleet(tmp_path) as fleet:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(fleet, request(*[shell("true")] * count))
        assert (refused.value.code(), refused.value.details()) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            f"SubmitManyRequest.jobs is {count}; it must be between 1 and 1000",
        )


async def test_access_to_every_project_is_asked_for_and_the_audit_log_has_each_job(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        red = await fleet.user("red", {"red": Access.MEMBER, "pink": Access.VIEWER, "rose": Access.MEMBER})
        await fleet.user("blue", {"blue": Access.MEMBER})
        own = shell("true", name="own", project="red")
        async with fleet.client(red) as client:
            with pytest.raises(UnknownNameError, match="there is no project 'blue'"):
                await client.jobs.submit_many([own, shell("true", project="blue")], queue_anyway=True)
            with pytest.raises(PermissionDeniedError, match="it needs member access to the project"):
                await client.jobs.submit_many([own, shell("true", project="pink")], queue_anyway=True)
            rooted = shell("true", name="rooted", project="red", image="img", user="root")
            with pytest.raises(JobsRefusedError, match=r"job 2 \(rooted\): project red is not opened for"):
                await client.jobs.submit_many([own, rooted], queue_anyway=True)
            assert [job async for job in admin.jobs.list()] == []
            ids = await client.jobs.submit_many([own, shell("true", project="rose")], queue_anyway=True)
        entries = [e for e in await admin.audit.list(who="red") if e.what == "jobs.submit"]
        told = sorted((entry.target, entry.result.partition(" for ")[0]) for entry in entries)
        assert told == sorted(
            [
                ("2 jobs", "not found among what the caller may see"),
                ("2 jobs", "needs member (project)"),
                ("rooted", "project red is not opened"),
                *((job, "ok") for job in ids),
            ]
        )
