"""Jobs with large files: they run on one node, or are refused before anything is sent."""

from pathlib import Path

import grpc
import pytest

from muster import wire
from muster.domain.jobs.job import InlineFile, JobSpec, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc.channel import open_channel
from muster.rpc.v1 import jobs_pb2, jobs_pb2_grpc
from tests.integration.fleet import SHOWN, running_fleet

MIB = 1 << 20


def large(count: int, size: int, *command: str, name: str = "large") -> JobSpec:
    """A job of which a node can have all executions, each with a file of that size."""
    role = Role(
        count=count,
        command=command or ("/bin/sh", "-c", f'test "$(wc -c < data)" = {size}'),
        files=(InlineFile(path="data", content=bytes(size)),),
        resources=Resources(cpu_millis=100),
    )
    return JobSpec(name=name, roles=(role,))


async def test_as_many_large_executions_as_may_share_a_node_run_there(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(large(30, MIB))

        assert job.phase is JobPhase.SUCCEEDED
        assert fleet.journal.said("node disconnected") == []


@pytest.mark.parametrize(
    ("count", "size", "sentence"),
    [
        (80, MIB, "role worker has 1.0 MiB of files, variables and command, and 80 of its executions"),
        (30, 3 * MIB, "makes the files of the job larger than 1024 KiB in all"),
    ],
    ids=["many", "large"],
)
async def test_more_than_may_share_a_node_is_refused_and_the_node_stays(
    tmp_path: Path, count: int, size: int, sentence: str
) -> None:
    async with running_fleet(tmp_path, "a") as fleet, open_channel(fleet.address) as channel:
        submit = jobs_pb2_grpc.JobServiceStub(channel).Submit
        request = jobs_pb2.SubmitRequest(spec=wire.job_spec_to_wire(large(count, size)))
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await submit(request, metadata=SHOWN.metadata)

        assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert sentence in (refusal.value.details() or "")
        assert (await fleet.run(large(1, 10))).phase is JobPhase.SUCCEEDED
        assert fleet.journal.said("node disconnected") == []


async def test_a_node_of_many_large_jobs_comes_back_and_gets_its_plan_in_several_messages(tmp_path: Path) -> None:
    go = tmp_path / "go"
    waits = ("/bin/sh", "-c", f'test "$(wc -c < data)" = {MIB} && until test -e {go}; do sleep 0.05; done')
    async with running_fleet(tmp_path, "a") as fleet:
        jobs = [await fleet.client.jobs.submit(large(2, MIB, *waits, name=f"large-{number}")) for number in range(6)]
        for job in jobs:
            await fleet.until_states(job.id, State.RUNNING, State.RUNNING)
        fleet.cable("a").cut()
        fleet.cable("a").mend()
        await fleet.connected("a", 2)
        go.touch()

        ended = [await fleet.client.jobs.wait(job.id) for job in jobs]

        assert [job.phase for job in ended] == [JobPhase.SUCCEEDED] * 6
        assert [len(job.attempts) for job in ended] == [1] * 6
        assert fleet.journal.said("a plan cannot be read") == []
