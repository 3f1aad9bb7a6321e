"""MIG devices from the driver to the program that is given one."""

import os
from pathlib import Path

import pytest

from agent.gpus.open import NvmlSource
from muster.domain.errors import MusterError
from muster.domain.jobs.job import Resources
from muster.domain.jobs.lifecycle import JobPhase
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml
from tests.integration.fleet import running_fleet
from tests.integration.jobs import shell

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)


def mig(profile: str) -> Resources:
    return Resources(gpus=1, mig=profile, cpu_millis=100)


async def test_a_program_is_given_the_device_of_its_profile_by_its_uuid(tmp_path: Path) -> None:
    driver = FakeNvml(tmp_path / "driver", gpus=1)
    driver.set({"mig": 1, "mig_devices": 3, "mig_profiles": "1g.10gb,1g.10gb,3g.40gb"})
    async with running_fleet(tmp_path) as fleet:
        await fleet.start_agent("a", gpus=NvmlSource({**os.environ, **driver.environ}))
        await fleet.connected("a")

        job = await fleet.run(
            shell(f'[ "$CUDA_VISIBLE_DEVICES" = {driver.slice_uuid(0, 2)} ]', resources=mig("3g.40gb"))
        )

        assert job.phase is JobPhase.SUCCEEDED
        assert job.attempts[0].executions[0].gpus == (driver.slice_uuid(0, 2),)
        (node,) = await fleet.client.nodes.list()
        assert [gpu.mig for gpu in node.inventory.gpus] == ["1g.10gb", "1g.10gb", "3g.40gb"]
        with pytest.raises(MusterError, match=r"did you mean 1g\.10gb\?"):
            await fleet.client.jobs.submit(shell("true", resources=mig("1g.12gb")))
        with pytest.raises(MusterError, match=r"needs 1 GPU, 0 are free|no node could ever run it"):
            await fleet.client.jobs.submit(shell("true", gpus=1))
