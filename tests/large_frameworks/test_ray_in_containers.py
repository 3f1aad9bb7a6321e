"""A cluster of Ray in containers, whose image has Ray and busybox."""

from pathlib import Path

import pytest

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.job import InlineFile, Resources
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.rules.filling_in import filled_in
from tests.e2e.deployment import Deployment
from tests.e2e.images import with_packages
from tests.frameworks.environments import ENVIRONMENTS
from tests.frameworks.machine_jobs import client_of, run
from tests.integration.jobs import command, with_keys

pytestmark = pytest.mark.fleet

PROGRAM = Path(__file__).with_name("programs") / "ray_addresses.py"


async def test_tasks_run_in_every_container(machines: Deployment) -> None:
    image = with_packages("muster/ray", *ENVIRONMENTS["ray"].packages)
    machines.fleet.load(image)
    framework = Framework(name=FrameworkName.RAY)
    spec = command("python", "/code/tasks.py", workers=2, max_per_node=1, framework=framework, image=image.reference)
    tasks = InlineFile(path="/code/tasks.py", content=PROGRAM.read_bytes())
    resources = Resources(cpu_millis=1000, shm=1 << 30)
    async with client_of(machines) as client:
        ended, printed = await run(client, filled_in(with_keys(spec, files=(tasks,), resources=resources)))
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    addresses = " ".join(sorted(node.address for node in machines.fleet.nodes))
    assert printed[-1] == f"2 nodes, tasks on {addresses}"
