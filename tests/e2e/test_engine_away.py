"""A Docker engine of which a part is killed while containers run: they go on, and end with their own exit codes."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.engine import Daemon
from tests.e2e.fleet import Node
from tests.e2e.waiting import until

RANKS = 6

WAITS = """
echo ready; touch "$HERE/began"
while [ ! -e "$HERE/go" ]; do sleep 0.05; done
echo went; touch "$HERE/ends"
exit 7
"""

ENDS_WELL = """
while [ ! -e "$ROOM/go" ]; do sleep 0.05; done
echo "went $MUSTER_RANK"; touch "$ROOM/ends-$MUSTER_RANK"
"""


@pytest.mark.fleet
@pytest.mark.parametrize(("agent", "ending"), [("goes on", "later"), ("is killed too", "meanwhile")])
def test_what_runs_when_dockerd_is_killed_ends_as_it_wants_to(muster: Deployment, agent: str, ending: str) -> None:
    node = muster.fleet.nodes[0]
    muster.start_agents(node)
    signs = muster.shared("signs")
    job = muster.submit(_job(signs))
    muster.await_states(job, ["running"])
    until((signs / "began").exists, within=30, what="user code")

    node.engine.daemons[Daemon.DOCKERD].kill()
    if agent == "is killed too":
        muster.agents[node.name].kill()
        successor = muster.start_agent(node)
        until(lambda: successor.output.count("connected to the coordinator") == 2, within=30, what="the next agent")
    if ending == "meanwhile":
        (signs / "go").touch()
        until((signs / "ends").exists, within=30, what="the end of user code")
    assert muster.states(job) == ["running"]
    node.engine.restart(Daemon.DOCKERD)
    node.engine.await_ready()
    (signs / "go").touch()

    shown = muster.ended(job)
    assert (len(shown["attempts"]), shown["failure"]["exit"]["code"]) == (1, 7)
    if ending == "later":
        texts = [line["text"] for line in muster.log_lines(job)]  # with a warning if it ends as soon as Docker is back
        assert [text for text in texts if not text.startswith("[muster]")] == ["ready", "went"]
    until(lambda: not muster.containers(), within=30, what="the container to go")


@pytest.mark.fleet
def test_what_ends_while_containerd_is_away_ends_with_its_own_exit_code(muster: Deployment) -> None:
    node = muster.fleet.nodes[0]
    muster.start_agents(node)
    signs = muster.shared("signs")
    gang = {"workers": RANKS, "resources": {"cpus": 0.1}, "timeouts": {"grace": "2s"}}
    job = muster.submit({**_job(signs), "command": ["sh", "-c", ENDS_WELL], **gang})
    muster.await_states(job, ["running"] * RANKS)

    containerd, dockerd = (node.engine.daemons[daemon] for daemon in Daemon)
    containerd.kill()
    (signs / "go").touch()
    until(lambda: len(list(signs.glob("ends-*"))) == RANKS, within=30, what="the end of user code")
    dockerd.send(signal.SIGSTOP)  # so that it does not hear what containerd tells when it is back
    try:
        node.engine.restart(Daemon.CONTAINERD)
        with _events(node) as events:
            # Some may have been told of before anybody listened.
            until(lambda: events.read_bytes().count(b"/tasks/exit") >= RANKS / 2, within=30, what="news of the ends")
    finally:
        dockerd.send(signal.SIGCONT)

    shown = muster.ended(job)
    assert (len(shown["attempts"]), shown["phase"]) == (1, "succeeded")
    assert {line["text"] for line in muster.log_lines(job)} == {f"went {rank}" for rank in range(RANKS)}
    assert "Docker missed the end of a container" in muster.agents[node.name].output


@contextmanager
def _events(node: Node) -> Iterator[Path]:
    """The file with what containerd tells, from when it answers on."""
    told, socket = node.engine.directory / "events", f"{node.engine.directory}/containerd.sock"
    command = ("ctr", "--address", socket, "--namespace", "moby")
    asking = (*command, "version")
    until(lambda: subprocess.run(asking, check=False, capture_output=True).returncode == 0, within=30, what=socket)
    with told.open("wb") as file, subprocess.Popen((*command, "events"), stdout=file) as listening:
        try:
            yield told
        finally:
            listening.kill()


def _job(directory: Path) -> dict[str, object]:
    return {
        "name": "patient",
        "image": "muster/busybox:latest",
        "pull": "never",
        "command": ["sh", "-c", WAITS],
        "env": {"HERE": str(directory)},
        "mounts": [f"{directory}:{directory}:rw"],
        "restarts": {"infrastructure": 3},
    }
