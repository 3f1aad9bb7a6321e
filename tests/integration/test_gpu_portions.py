"""Portions of a GPU from the driver to the programs that share it."""

import os
from pathlib import Path

import pytest

from agent.gpus.open import NvmlSource
from muster.domain.errors import MusterError
from muster.domain.ids import GpuUuid
from muster.domain.jobs.job import Resources
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml
from tests.integration.fleet import running_fleet
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
