"""A Docker engine that is killed while containers run: they go on, and end with their own exit codes."""

from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.engine import Daemon
from tests.e2e.waiting import until

WAITS = """
echo ready; touch "$ROOM/began"
while [ ! -e "$ROOM/go" ]; do sleep 0.05; done
echo went; touch "$ROOM/ends"
exit 7
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


def _job(directory: Path) -> dict[str, object]:
    return {
        "name": "patient",
        "image": "muster/busybox:latest",
        "pull": "never",
        "command": ["sh", "-c", WAITS],
        "env": {"ROOM": str(directory)},
        "mounts": [f"{directory}:{directory}:rw"],
        "restarts": {"infrastructure": 3},
    }
