"""What is stopped leaves nothing that runs."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.command_line import CLI, CommandLine
from tests.e2e.deployment import Deployment
from tests.e2e.programs import Program
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

    assert muster.run("stop", job).code == 0
    assert muster.ended(job)["phase"] == "stopped"
    until(lambda: not muster.containers(), within=20, what="the last container to go")


@pytest.mark.parametrize("trap", ["", "trap '' TERM;"], ids=["heeding SIGTERM", "deaf to SIGTERM"])
def test_ctrl_c_at_muster_up_leaves_no_process(tmp_path: Path, trap: str) -> None:
    # Whatever is started by `muster up`, or by a job of it, inherits this variable.
    origin = {"TEST_ORIGIN": str(tmp_path)}
    muster = CommandLine(tmp_path, {"MUSTER_HOME": str(tmp_path / "home"), **origin})
    # Programs that a script starts in the background ignore SIGINT; those at a terminal do not.
    at_terminal = ["env", "--default-signal=INT"]
    command = [*at_terminal, str(CLI), "up", "--nodes", "3", "--listen", "127.0.0.1:0", "--no-docker"]
    up = Program("muster up", command, log=tmp_path / "up.log", env=muster.env)
    try:
        until(lambda: "serves at" in up.output, within=30, what="muster up to serve")
        script = f"{trap} while true; do sleep 1; done"
        job = {"name": "endless", "workers": 3, "command": script, "env": origin, "timeouts": {"grace": "1s"}}
        muster.await_states(muster.submit(job), ["running"] * 3)
        assert len(descending_from(tmp_path)) >= 5  # three shells, the coordinator, the agents

        os.killpg(up.pid, signal.SIGINT)  # as a terminal does
        assert up.wait(within=30) == 0
        assert descending_from(tmp_path) == []
    finally:
        up.kill()
        for pid in descending_from(tmp_path):
            os.kill(pid, signal.SIGKILL)


def descending_from(origin: Path) -> list[int]:
    """The processes that have `origin` in their environment."""
    mark = f"TEST_ORIGIN={origin}".encode()
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in variables(path)]


def variables(environ: Path) -> list[bytes]:
    try:
        return environ.read_bytes().split(b"\0")
    except OSError:
        return []  # ended meanwhile, or not ours
