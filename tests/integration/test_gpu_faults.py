"""A GPU that breaks under a job: the job's failure names it."""

import os
from contextlib import aclosing
from pathlib import Path

import pytest

from agent.gpus.open import NvmlSource
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.view import JobView
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml
from tests.integration.fleet import Fleet, running_fleet
from tests.integration.jobs import shell

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)


async def failed_after(fleet: Fleet, directory: Path, xid: int, code: int = 7) -> tuple[JobView, FakeNvml]:
    """A job of two ranks, on nodes with one GPU each, in which rank 1 ends right after an Xid of its GPU."""
    drivers = [FakeNvml(directory / f"driver{node}", gpus=1, node=node) for node in (1, 2)]
    for driver, name in zip(drivers, "ab", strict=True):
        await fleet.start_agent(name, gpus=NvmlSource({**os.environ, **driver.environ}))
        await fleet.connected(name)
    fifo = directory / "go"
    os.mkfifo(fifo)
    script = f"if [ $RANK = 0 ]; then exec sleep 60; fi; read line < {fifo}; echo CUDA error >&2; exit {code}"
    job = await fleet.client.jobs.submit(
        shell(script, 2, max_per_node=1, gpus=1, restarts=RestartPolicy(infrastructure=0))
    )
    job = await fleet.until_states(job.id, State.RUNNING, State.RUNNING)
    broken = drivers["ab".index(str(job.attempts[0].executions[1].node))]
    broken.raise_xid(0, xid)
    await fleet.tell(fifo)
    return await fleet.client.jobs.wait(job.id), broken


async def test_a_job_whose_gpu_fell_off_the_bus_failed_by_that_though_its_program_ended_at_once(
    tmp_path: Path,
) -> None:
    async with running_fleet(tmp_path) as fleet:
        job, broken = await failed_after(fleet, tmp_path, 79)
        failure = job.failure
        assert failure is not None
        assert (failure.kind, failure.rank, failure.exit) == (FailureKind.GPU, 1, Exit(code=7))
        assert failure.message == (
            f"GPU 0 ({broken.uuid(0)}) reported Xid 79: GPU has fallen off the bus, "
            "less than 1 s before it ended with exit code 7"
        )
        assert failure.log_tail == ("CUDA error",)

        async with aclosing(fleet.client.nodes.events(str(failure.node), follow=True)) as story:
            joined, fault = await anext(story), await anext(story)
        assert [joined.kind, fault.kind] == ["joined", "gpu_fault"]
        assert fault.text.startswith("GPU 0: ")
        assert "GPU has fallen off the bus" in fault.text


async def test_a_fault_of_the_programs_making_is_named_beside_its_exit_code(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        job, broken = await failed_after(fleet, tmp_path, 31)
        assert job.failure is not None
        assert job.failure.kind is FailureKind.EXIT_CODE
        assert job.failure.message == (
            f"ended with exit code 7, less than 1 s after GPU 0 ({broken.uuid(0)}) reported Xid 31: "
            "GPU memory page fault"
        )
