"""What is stopped leaves nothing that runs."""

import os
import signal
import sys
import uuid
from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.programs import Program, environment
from tests.e2e.waiting import until


@pytest.mark.fleet
@pytest.mark.parametrize("network", ["host", "bridge"])
def test_a_stopped_job_leaves_no_container_on_any_node(muster: Deployment, network: str) -> None:
    muster.start_agents(*muster.fleet.nodes)
    job = muster.submit(
        {
            "name": "endless",
            "workers": 3,
            "placement": "spread",
            "image": "muster/busybox:latest",
            "pull": "never",
            "network": network,
            "command": ["sleep", "100000"],  # as process 1 it does not heed SIGTERM
            "ports": ["master"],
            "timeouts": {"grace": "1s"},
        },
    )
    muster.await_states(job, ["running"] * 3)
    assert {name.partition("/")[0] for name in muster.containers()} == {"node1", "node2", "node3"}

    assert muster.muster("stop", job).code == 0
    assert muster.ended(job)["phase"] == "stopped"
    until(lambda: not muster.containers(), within=20, what="the last container to go")
