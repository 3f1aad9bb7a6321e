"""No user code starts before the last execution has checked in, whatever goes wrong on one node."""

import errno
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.fleet import Node
from tests.e2e.waiting import until

pytestmark = pytest.mark.fleet


@pytest.fixture
def marks(muster: Deployment) -> Path:
    """A directory in which each execution leaves a file as soon as it runs."""
    return muster.shared("marks")


@pytest.fixture
def small_disk(muster: Deployment) -> Iterator[Path]:
    """A file system of 4 MB."""
    directory = muster.directory / "small"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", directory], check=True)
    yield directory
    subprocess.run(["umount", "--lazy", directory], check=True)


def fill(directory: Path) -> None:
    """Leave no block free below the directory."""
    with (directory / "filler").open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017 - how many writes succeed is not known


def gang(marks: Path, **keys: object) -> dict[str, Any]:
    """A job of one execution per node that leaves marks."""
    return {
        "name": "gang",
        "workers": 3,
        "placement": "spread",
        "image": "muster/busybox:latest",
        "pull": "never",
        "command": "echo $MUSTER_RANK runs; touch /marks/$MUSTER_RANK",
        "mounts": [f"{marks}:/marks:rw"],
        **keys,
    }


def ran(marks: Path) -> list[str]:
    return sorted(mark.name for mark in marks.iterdir())


def rank_on(muster: Deployment, job: str, node: Node) -> int:
    (rank,) = (execution["rank"] for execution in muster.executions(job) if execution["node"] == node.name)
    return int(rank)


def assert_nothing_ran(muster: Deployment, job: str, marks: Path) -> None:
    assert ran(marks) == []
    assert list(muster.log_lines(job)) == []
    states = [entry["state"] for execution in muster.executions(job) for entry in execution["transitions"]]
    assert "running" not in states


def assert_blamed(muster: Deployment, job: str, node: Node, kind: str, cause: str) -> None:
    """The one failure of the job names the rank, the node and the cause, and so does what a user reads."""
    failure = muster.ask("show", job)["failure"]
    rank = rank_on(muster, job, node)
    assert (failure["rank"], failure["node"], failure["kind"]) == (rank, node.name, kind)
    assert cause in failure["message"]
    said = muster.run("why", job).out
    assert f"rank {rank} on {node.name}" in said
    assert cause in said


def test_two_executions_wait_for_a_third_whose_agent_is_stuck(muster: Deployment, marks: Path) -> None:
    muster.start_agents(*muster.fleet.nodes)
    late = muster.fleet.nodes[1]
    muster.agents[late.name].send(signal.SIGSTOP)

    job = muster.submit(gang(marks))
    rank = rank_on(muster, job, late)
    expected = ["checked_in"] * 3
    expected[rank] = "placed"
    muster.await_states(job, expected)
    assert ran(marks) == []
    awaited = muster.ask("why", job)["awaited"]
    assert [(each["rank"], each["node"]) for each in awaited] == [(rank, late.name)]

    muster.agents[late.name].send(signal.SIGCONT)
    assert muster.ended(job)["phase"] == "succeeded"
    assert ran(marks) == ["0", "1", "2"]
    entered = {
        state: [
            entry["at"] for each in muster.executions(job) for entry in each["transitions"] if entry["state"] == state
        ]
        for state in ("checked_in", "running")
    }
    assert max(entered["checked_in"]) < min(entered["running"])


def test_a_check_in_deadline_names_who_is_missing(muster: Deployment, marks: Path) -> None:
    muster.start_agents(*muster.fleet.nodes)
    late = muster.fleet.nodes[2]
    muster.agents[late.name].send(signal.SIGSTOP)

    job = muster.submit(gang(marks, timeouts={"check_in": "3s"}))
    until(lambda: muster.ask("show", job)["failure"], within=30, what="the check-in deadline")
    assert_blamed(muster, job, late, "check_in_timeout", "checked in")

    muster.agents[late.name].send(signal.SIGCONT)
    assert muster.ended(job)["phase"] == "failed"
    assert_nothing_ran(muster, job, marks)


def test_a_job_waits_for_an_agent_that_comes_later(muster: Deployment, marks: Path) -> None:
    first, second, third = muster.fleet.nodes
    muster.start_agents(first, second)

    job = muster.submit(gang(marks, max_per_node=1), "--queue-anyway")
    assert muster.ask("show", job)["phase"] == "queued"
    assert {refusal["node"] for refusal in muster.ask("why", job)["refusals"]} <= {first.name, second.name}
    assert ran(marks) == []

    muster.start_agent(third)
    assert muster.ended(job)["phase"] == "succeeded"
    assert ran(marks) == ["0", "1", "2"]


def test_a_missing_image_on_one_node(muster: Deployment, marks: Path) -> None:
    first, second, third = muster.fleet.nodes
    muster.start_agents(first, second, third)
    for node in (first, third):
        node.engine.tag("muster/busybox:latest", "muster/partial:latest")

    job = muster.submit(gang(marks, image="muster/partial:latest"))
    assert muster.ended(job)["phase"] == "failed"
    assert_blamed(muster, job, second, "image", "muster/partial:latest")
    assert_nothing_ran(muster, job, marks)


def test_a_taken_port_on_one_node(muster: Deployment, marks: Path) -> None:
    muster.start_agents(*muster.fleet.nodes)
    taken = muster.fleet.nodes[2]
    serve = "import socket; server = socket.create_server(('', 29500)); print('listening', flush=True); server.accept()"
    stranger = taken.start([sys.executable, "-c", serve], log=muster.directory / "stranger.log")
    until(lambda: "listening" in stranger.output, within=10, what="the stranger to listen")
    try:
        job = muster.submit(gang(marks, ports=[{"name": "rpc", "port": 29500}]))
        assert muster.ended(job)["phase"] == "failed"
    finally:
        stranger.kill()
    assert_blamed(muster, job, taken, "port_taken", "29500")
    assert_nothing_ran(muster, job, marks)


def test_a_full_disk_on_one_node(muster: Deployment, marks: Path, small_disk: Path) -> None:
    first, second, third = muster.fleet.nodes
    muster.start_agent(first)
    muster.start_agent(second, state=small_disk / "state")
    muster.start_agent(third)
    muster.await_nodes(3)
    fill(small_disk)

    job = muster.submit(gang(marks))
    assert muster.ended(job)["phase"] == "failed"
    assert_blamed(muster, job, second, "disk_full", "disk is full")
    assert_nothing_ran(muster, job, marks)


def test_a_command_that_one_image_lacks(muster: Deployment, marks: Path) -> None:
    first, second, third = muster.fleet.nodes
    muster.start_agents(first, second, third)
    for node in (second, third):
        node.engine.tag("muster/python:latest", "muster/odd:latest")
    first.engine.tag("muster/busybox:latest", "muster/odd:latest")

    code = "import os, pathlib; pathlib.Path('/marks', os.environ['RANK']).touch()"
    job = muster.submit(gang(marks, image="muster/odd:latest", command=["python3", "-c", code]))
    assert muster.ended(job)["phase"] == "failed"
    assert_blamed(muster, job, first, "command_not_found", "python3")
    assert_nothing_ran(muster, job, marks)
