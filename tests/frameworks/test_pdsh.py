"""pdsh reaches all executions by Muster's ssh."""

import shutil

import pytest

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.lifecycle import JobPhase
from tests.e2e.deployment import Deployment
from tests.frameworks.machine_jobs import client_of, run
from tests.integration.jobs import shell

pytestmark = pytest.mark.fleet


async def test_a_command_runs_in_all_executions(machines: Deployment) -> None:
    if shutil.which("pdsh") is None:
        pytest.skip("needs pdsh")
    script = (
        r"""pdsh -N -w "$(cut -d ' ' -f 1 $MUSTER_HOSTFILE | paste -sd ,)" 'echo rank $MUSTER_RANK on $(hostname)'"""
    )
    spec = shell(script, workers=2, framework=Framework(name=FrameworkName.MPI))
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    assert sorted(printed) == ["rank 0 on node1", "rank 1 on node2"]
