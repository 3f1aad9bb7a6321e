"""Portions of a GPU from the driver to the programs that share it."""

import os
from pathlib import Path

import pytest

from agent.gpus.open import NvmlSource
from agent.gpus.simulated import SimulatedSource
from muster.domain.errors import MusterError
from muster.domain.event import JobEventKind
from muster.domain.fleet.pool import Pool, PortionRule
from muster.domain.ids import GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import Resources
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.usage import UsageBy
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml
from tests.integration.fleet import Fleet, running_fleet
from tests.integration.jobs import shell

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)


def part(thousandths: int) -> Resources:
    return Resources(gpus=1, gpu_portion=thousandths, cpu_millis=100)


async def test_programs_share_a_gpu_and_each_is_told_its_part(tmp_path: Path) -> None:
    driver = FakeNvml(tmp_path / "driver", gpus=2)
    async with running_fleet(tmp_path) as fleet:
        await fleet.start_agent("a", gpus=NvmlSource({**os.environ, **driver.environ}))
        await fleet.connected("a")
        (node,) = await fleet.client.nodes.list()
        memory = node.inventory.gpus[0].memory

        long = await fleet.client.jobs.submit(shell("sleep 600", resources=part(500)))
        await fleet.until_states(long.id, State.RUNNING)
        short = await fleet.run(
            shell(
                f'[ "$MUSTER_GPU_MEMORY" = {memory // 4} ] && [ "$XLA_PYTHON_CLIENT_MEM_FRACTION" = 0.25 ]',
                resources=part(250),
            )
        )

        assert short.phase is JobPhase.SUCCEEDED
        uuid = GpuUuid(driver.uuid(0))
        assert short.attempts[0].executions[0].gpus == (uuid,)
        (node,) = await fleet.client.nodes.list()
        assert (node.gpus_taken, node.gpus_shared[uuid].thousandths) == ((), 500)
        with pytest.raises(MusterError, match="no node could ever run it"):
            await fleet.client.jobs.submit(shell("true", resources=Resources(gpus=1, gpu_memory=2 * memory)))


async def test_who_computes_on_a_shared_gpu_is_no_stranger_there_while_anybody_has_a_portion(tmp_path: Path) -> None:
    driver = FakeNvml(tmp_path / "driver", gpus=2)
    async with running_fleet(tmp_path) as fleet:
        await fleet.start_agent("a", gpus=NvmlSource({**os.environ, **driver.environ}))
        await fleet.connected("a")
        jobs = [await fleet.client.jobs.submit(shell("sleep 600", resources=part(500))) for _ in range(2)]
        for job in jobs:
            await fleet.until_states(job.id, State.RUNNING)
        driver.set({"gpu0.procs": "4242:5,4343:5"})

        await fleet.client.jobs.stop(jobs[0].id)
        await fleet.until_states(jobs[0].id, State.STOPPED)
        last = await fleet.run(shell("true", resources=part(500)))

        assert last.attempts[0].executions[0].gpus == (driver.uuid(0),)
        (node,) = await fleet.client.nodes.list()
        assert [each.problems for each in node.inventory.gpus] == [(), ()]
        assert [each.thousandths for each in node.gpus_shared.values()] == [500]


HOLD = "echo $$; sleep 600"


async def hold_memory(fleet: Fleet, driver: FakeNvml, job: JobId, size: int) -> None:
    """Let the first process of a job, and one that nobody knows, have memory of the first GPU."""
    [line] = await fleet.printed(job, 1)
    driver.set({"gpu0.procs": f"{int(line.text)}:{size},1:{size}"})


async def test_who_takes_more_memory_than_its_portion_is_stopped_where_the_pool_says_so(tmp_path: Path) -> None:
    driver = FakeNvml(tmp_path / "driver", gpus=1)
    async with running_fleet(tmp_path) as fleet:
        await fleet.start_agent("a", gpus=NvmlSource({**os.environ, **driver.environ}))
        await fleet.connected("a")
        await fleet.client.pools.put(Pool(name="default", enforce=PortionRule.STOP), anyway=True)
        (node,) = await fleet.client.nodes.list()
        memory = node.inventory.gpus[0].memory
        good = await fleet.client.jobs.submit(shell(HOLD, resources=part(250)))
        greedy = await fleet.client.jobs.submit(shell(HOLD, resources=part(250)))
        await fleet.until_states(good.id, State.RUNNING)
        await hold_memory(fleet, driver, greedy.id, memory // 2)

        ended = await fleet.client.jobs.wait(greedy.id)
        goes_on = await fleet.client.jobs.get(good.id)

    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.GPU_MEMORY
    used, promised = (f"{size / (1 << 30):.1f} GiB" for size in (memory // 2, memory // 4))
    assert f"uses {used} of the memory of {driver.uuid(0)}, and its portion is {promised}" in ended.failure.message
    assert goes_on.phase is JobPhase.RUNNING


async def test_where_the_pool_says_nothing_people_are_told_and_it_goes_on(tmp_path: Path) -> None:
    driver = FakeNvml(tmp_path / "driver", gpus=1)
    async with running_fleet(tmp_path) as fleet:
        await fleet.start_agent("a", gpus=NvmlSource({**os.environ, **driver.environ}))
        await fleet.connected("a")
        (node,) = await fleet.client.nodes.list()
        job = await fleet.client.jobs.submit(shell(HOLD, resources=part(250)))
        await hold_memory(fleet, driver, job.id, node.inventory.gpus[0].memory)

        async for event in fleet.client.jobs.events(job.id, follow=True):
            if event.kind is JobEventKind.GPU_MEMORY:
                break
        goes_on = await fleet.client.jobs.get(job.id)

    assert event.text.startswith("rank 0 on a uses ")
    assert event.text.endswith("; nothing stops it")
    assert goes_on.phase is JobPhase.RUNNING


async def test_an_agent_that_restarts_keeps_the_portions_that_are_held_and_what_they_were_busy(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        source = SimulatedSource("1xH100", NodeId("a"))
        await fleet.start_agent("a", gpus=source)
        await fleet.connected("a")
        (gpu,) = (await source.read()).gpus
        source.make_busy(gpu.uuid, 100)
        held = await fleet.client.jobs.submit(shell("sleep 6; echo late; sleep 600", resources=part(500)))
        await fleet.printed(held.id, 1)
        before = (await fleet.client.nodes.list())[0].gpus_shared
        await fleet.stop_agent("a", stop=False)
        await fleet.start_agent("a", gpus="fake:1xH100")
        await fleet.connected("a", 2)

        beside = await fleet.client.jobs.submit(shell("sleep 600", resources=part(500)))
        await fleet.until_states(beside.id, State.RUNNING)
        third = await fleet.client.jobs.submit(shell("true", resources=part(100)))
        (node,) = await fleet.client.nodes.list()
        jobs = [await fleet.client.jobs.get(each.id) for each in (held, third)]
        await fleet.client.jobs.stop(held.id)
        await fleet.client.jobs.wait(held.id)
        [row] = [each for each in (await fleet.client.projects.usage(by=UsageBy.JOB)).rows if each.of == held.id]

    assert before[gpu.uuid].thousandths == 500
    assert node.gpus_shared[gpu.uuid].thousandths == 1000
    assert [job.phase for job in jobs] == [JobPhase.RUNNING, JobPhase.QUEUED]
    assert row.busy is not None
    assert 1000 < row.busy <= row.held.gpus
