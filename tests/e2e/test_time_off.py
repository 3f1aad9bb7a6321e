"""Jobs that are suspended, and nodes that are out of service for a while."""

from typing import Any

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.waiting import until

pytestmark = pytest.mark.fleet

PROGRAM = """
trap 'echo "reason $(grep -o "suspended" "$MUSTER_CONFIG_DIR/notice.json")"; exit 0' TERM
echo "attempt $MUSTER_ATTEMPT"
while :; do sleep 0.05; done
"""


def job(name: str, **more: Any) -> dict[str, Any]:
    """Two executions, one on each node, that say why they are stopped."""
    return {
        "name": name,
        "workers": 2,
        "placement": "spread",
        "image": "muster/busybox:latest",
        "pull": "never",
        "command": ["sh", "-c", PROGRAM],
        "restarts": {"infrastructure": 0},
        **more,
    }


def test_a_suspended_gang_holds_nothing_and_goes_on_although_it_may_not_be_restarted(muster: Deployment) -> None:
    muster.start_agents(*muster.fleet.nodes[:2])
    muster.await_nodes(2)
    train = muster.submit(job("train"))
    muster.await_states(train, ["running"] * 2)

    assert muster.run("suspend", train).code == 0
    until(lambda: not muster.containers(), within=30, what="the containers to end")
    assert muster.ask("show", train)["phase"] == "waiting"
    assert "`muster resume" in muster.ask("why", train)["summary"]
    assert muster.run("logs", train, "--attempt", "1", "--no-prefix").out.splitlines().count("reason suspended") == 2

    assert muster.run("resume", train).code == 0
    muster.await_states(train, ["running"] * 2, within=60)
    shown = muster.ask("show", train)
    assert [attempt["number"] for attempt in shown["attempts"]] == [1, 2]
    assert "attempt 2" in muster.run("logs", train, "--attempt", "2", "--no-prefix").out


def test_a_window_keeps_its_node_free_of_what_does_not_end_before_it(muster: Deployment) -> None:
    muster.start_agents(*muster.fleet.nodes[:2])
    muster.await_nodes(2)
    closed = muster.fleet.nodes[0].name
    assert muster.run("windows", "add", "disks", "--node", closed, "--from", "2h", "--to", "3h").code == 0

    short = muster.submit(job("short", timeouts={"run": "30m", "check_in": "5m"}))
    muster.await_states(short, ["running"] * 2)
    long = muster.submit(job("long", max_per_node=1))
    assert "window disks" in str(muster.ask("why", long)["refusals"])

    assert muster.run("windows", "remove", "disks").code == 0
    muster.await_states(long, ["running"] * 2, within=60)
