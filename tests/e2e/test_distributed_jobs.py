"""Real distributed jobs in containers on three nodes."""

import re
from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment

pytestmark = pytest.mark.fleet

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.usefixtures("digits_image")
def test_pytorch_trains_on_handwritten_digits_across_three_nodes(muster: Deployment) -> None:
    muster.start_agents(*muster.fleet.nodes)

    job = muster.submit_file(EXAMPLES / "ddp-digits/job.yaml")
    ended = muster.ended(job, within=180)
    log = muster.run("logs", "-f", job).out

    assert ended["phase"] == "succeeded", log
    executions = ended["attempts"][-1]["executions"]
    assert sorted(execution["node"] for execution in executions) == ["node1", "node2", "node3"]
    first, last, accuracy = _only(r"loss ([\d.]+) -> ([\d.]+); ([\d.]+)% of \d+ held-out digits recognised", log)
    assert float(last) < float(first) / 4
    assert float(accuracy) >= 90
    digests = dict(re.findall(r"rank (\d): parameters ([0-9a-f]{16}), the same on all ranks", log))
    assert sorted(digests) == ["0", "1", "2"]
    assert len(set(digests.values())) == 1
    assert {line["rank"] for line in muster.log_lines(job)} == {0, 1, 2}


def test_containers_on_bridge_networks_reach_each_other_at_one_published_port(muster: Deployment) -> None:
    muster.start_agents(*muster.fleet.nodes)
    _build_echo(muster)

    job = muster.submit_file(EXAMPLES / "bridge-echo/job.yaml")
    ended = muster.ended(job)
    log = muster.run("logs", "-f", job).out

    assert ended["phase"] == "succeeded", log
    nodes = {execution["node"]: execution["address"] for execution in ended["attempts"][-1]["executions"]}
    assert nodes == {node.name: node.address for node in muster.fleet.nodes}
    for rank, peers in enumerate((["rank 1", "rank 2"], ["rank 0", "rank 2"], ["rank 0", "rank 1"])):
        assert f"rank {rank} heard {peers} and was asked by all: right" in log


def _build_echo(muster: Deployment) -> None:
    """Build the example's image on every node as examples/README.md says, without a registry."""
    (name,) = re.findall(r"^docker build -t (\S+) examples/bridge-echo$", _text("README.md"), re.MULTILINE)
    (base,) = re.findall(r"^ARG BASE=(\S+)$", _text("bridge-echo/Dockerfile"), re.MULTILINE)
    for node in muster.fleet.nodes:
        node.engine.tag(name, base)
        node.engine.call("DELETE", f"/images/{name}:latest")
        node.engine.build(EXAMPLES / "bridge-echo", name)


def _text(name: str) -> str:
    return (EXAMPLES / name).read_text()


def _only(pattern: str, text: str) -> tuple[str, ...]:
    """The groups of the one place where the pattern fits."""
    (groups,) = re.findall(pattern, text)
    return tuple(groups)
