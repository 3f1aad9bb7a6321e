"""GPUs of nodes: who gets which, who waits, and for what."""

import asyncio
from collections import Counter
from pathlib import Path

import grpc.aio
import pytest

from muster import wire
from muster.domain.errors import ConflictError
from muster.domain.jobs.job import Packing, Resources
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc.v1 import jobs_pb2
from muster.rpc.v1.jobs_pb2_grpc import JobServiceStub
from tests.integration.fleet import CPUS, SHOWN, Fleet, executions, running_fleet
from tests.integration.jobs import shell

SHOW_AND_WAIT = "echo $CUDA_VISIBLE_DEVICES; exec sleep 60"


async def end(fleet: Fleet, *jobs: str) -> None:
    for job in jobs:
        await fleet.client.jobs.stop(job)
    for job in jobs:
        await fleet.client.jobs.wait(job)


async def test_four_jobs_share_sixteen_gpus_and_a_fifth_waits_for_one_of_them(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        jobs = [(await fleet.client.jobs.submit(shell(SHOW_AND_WAIT, gpus=4))).id for _ in range(4)]
        shown = [(await fleet.printed(job, 1))[0].text.decode().split(",") for job in jobs]
        given = [executions(await fleet.client.jobs.get(job))[0] for job in jobs]
        assert [tuple(uuids) for uuids in shown] == [execution.gpus for execution in given]
        assert len({uuid for uuids in shown for uuid in uuids}) == 16
        assert Counter(execution.node for execution in given) == {"a": 2, "b": 2}

        fifth = await fleet.client.jobs.submit(shell(SHOW_AND_WAIT, gpus=4))
        why = await fleet.client.jobs.why(fifth.id)
        assert (why.phase, why.queue_position) == (JobPhase.QUEUED, 1)
        assert [refusal.node for refusal in why.refusals] == ["a", "b"]
        assert all("GPU" in refusal.reason for refusal in why.refusals)
        assert [len(node.gpus_taken) for node in await fleet.client.nodes.list()] == [8, 8]

        await end(fleet, jobs[2])
        placed = await fleet.until_states(fifth.id, State.RUNNING)
        assert set(executions(placed)[0].gpus) == set(shown[2])
        await end(fleet, *jobs, fifth.id)
        assert [node.gpus_taken for node in await fleet.client.nodes.list()] == [(), ()]


async def test_a_gang_is_placed_whole_or_not_at_all(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        first = await fleet.client.jobs.submit(shell("exec sleep 60", gpus=6))
        await fleet.until_states(first.id, State.RUNNING)
        gang = await fleet.client.jobs.submit(shell("true", 2, gpus=8))
        assert (gang.phase, [each.gpus for each in executions(gang)]) == (JobPhase.QUEUED, [(), ()])
        assert sum(len(node.gpus_taken) for node in await fleet.client.nodes.list()) == 6
        await end(fleet, first.id)
        assert (await fleet.client.jobs.wait(gang.id)).phase is JobPhase.SUCCEEDED


async def test_the_job_of_higher_priority_goes_first(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        running = await fleet.client.jobs.submit(shell("exec sleep 60", gpus=8))
        low, high = [await fleet.client.jobs.submit(shell("true", gpus=8, priority=priority)) for priority in (0, 5)]
        assert [(await fleet.client.jobs.why(job.id)).queue_position for job in (high, low)] == [1, 2]
        await end(fleet, running.id)
        started = [(await fleet.client.jobs.wait(job.id)).started_at for job in (high, low)]
        assert None not in started
        assert sorted(started, key=str) == started


async def test_a_small_job_passes_a_large_one_only_where_it_does_not_delay_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        running = await fleet.client.jobs.submit(shell("exec sleep 60", gpus=4))
        large = await fleet.client.jobs.submit(shell("true", gpus=8))
        small = await fleet.client.jobs.submit(shell("true", gpus=2))
        without = await fleet.run(shell("true"))
        assert without.phase is JobPhase.SUCCEEDED
        why = await fleet.client.jobs.why(small.id)
        assert (why.phase, why.queue_position) == (JobPhase.QUEUED, 2)
        await end(fleet, running.id)
        for job in (large, small):
            assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED


@pytest.mark.parametrize(("packing", "nodes"), [(Packing.PACK, [4]), (Packing.SPREAD, [2, 2])])
async def test_workers_are_packed_or_spread(tmp_path: Path, packing: Packing, nodes: list[int]) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(shell("true", 4, gpus=1, packing=packing))
        assert list(Counter(each.node for each in executions(job)).values()) == nodes


async def test_labels_choose_the_nodes(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(shell("true", 2, node_labels={"name": "b"}))
        assert {each.node for each in executions(job)} == {"b"}


async def test_a_job_that_no_node_could_ever_run_is_refused_with_every_reason(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        with pytest.raises(ConflictError) as refused:
            await fleet.client.jobs.submit(shell("true", gpus=9))
        assert [line.split()[0] for line in str(refused.value).splitlines()[1:]] == ["a", "b"]
        job = await fleet.client.jobs.submit(shell("true", gpus=9), queue_anyway=True)
        assert job.phase is JobPhase.QUEUED
        tried = await fleet.client.jobs.submit(shell("true"), dry_run=True)
        assert (tried.id, len([job async for job in fleet.client.jobs.list()])) == ("", 1)


async def test_two_hundred_jobs_submitted_at_once_all_end(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b", "c") as fleet:
        spec = shell("true", resources=Resources(cpu_millis=2000))
        async with asyncio.TaskGroup() as tasks:
            runs = [tasks.create_task(fleet.run(spec)) for _ in range(200)]
        assert Counter(run.result().phase for run in runs) == {JobPhase.SUCCEEDED: 200}
        assert [node.cpu_millis_taken for node in await fleet.client.nodes.list()] == [0, 0, 0]
        phases = [job.phase async for job in fleet.client.jobs.list()]
        assert phases == [JobPhase.SUCCEEDED] * 200


async def test_cpus_are_given_only_once(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        all_of_it = Resources(cpu_millis=CPUS * 1000)
        first = await fleet.client.jobs.submit(shell("exec sleep 60", resources=all_of_it))
        await fleet.until_states(first.id, State.RUNNING)
        second = await fleet.client.jobs.submit(shell("true", resources=Resources(cpu_millis=1)))
        assert second.phase is JobPhase.QUEUED
        await end(fleet, first.id)
        assert (await fleet.client.jobs.wait(second.id)).phase is JobPhase.SUCCEEDED


async def test_submitting_again_with_the_same_key_gives_the_same_job(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, grpc.aio.insecure_channel(fleet.address) as channel:
        request = jobs_pb2.SubmitRequest(spec=wire.job_spec_to_wire(shell("true")), idempotency_key="k")
        answers = await asyncio.gather(
            *(JobServiceStub(channel).Submit(request, metadata=SHOWN.metadata) for _ in range(3))
        )
        assert len({answer.job.id for answer in answers}) == 1
        await fleet.client.jobs.wait(answers[0].job.id)
        await fleet.restart_coordinator()
        assert (await JobServiceStub(channel).Submit(request, metadata=SHOWN.metadata)).job.id == answers[0].job.id
        assert len([job async for job in fleet.client.jobs.list()]) == 1
