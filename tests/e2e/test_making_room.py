"""A team has borrowed GPUs, and the team that they are promised to takes them back."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.waiting import until
from tests.fake_nvml import COMPILER, NO_COMPILER, FakeNvml

pytestmark = [pytest.mark.fleet, pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)]

GPUS = 4
"""GPUs of each node, and of each job."""
PROGRAM = """
import importlib, itertools, os, pathlib, signal, sys, time

sys.path.append(os.environ["MUSTER_CONFIG_DIR"])
worker = importlib.import_module("muster_worker")
heard = []
signal.signal(signal.SIGTERM, lambda number, frame: heard.append(signal.Signals(number).name))
name, there = os.environ["MUSTER_JOB_NAME"], pathlib.Path("/there")
checkpoint = there / f"checkpoint-{name}"
first = int(checkpoint.read_text()) if checkpoint.exists() else 0
print(f"begins at {first}", flush=True)
for step in itertools.count(first):
    notice = worker.noticed()
    if notice and heard and (there / "save").exists():
        checkpoint.write_text(str(step))
        worker.checkpointed()
        print(f"saved {step}: {heard} {notice.reason}, comes back: {notice.comes_back}", flush=True)
        print(f"had {notice.seconds_left:.0f} s left", flush=True)
        sys.exit(3)
    if (there / f"end-{name}").exists():
        sys.exit(0)
    time.sleep(0.05)
"""


def test_who_has_borrowed_saves_its_work_makes_room_and_goes_on_elsewhere(muster: Deployment) -> None:
    there = two_teams(muster)
    first, second = (muster.submit(training(f"train-{number}", "ada", there)) for number in (1, 2))
    for job in (first, second):
        muster.await_states(job, ["running"])

    mine = muster.submit(training("mine", "bob", there))
    until(lambda: muster.states(second) == ["stopping"], within=60, what="the newest job to be told to stop")
    late = muster.submit(training("late", "ada", there))

    # What people are told.
    assert "1 job is stopped for it" in muster.ask("why", mine)["summary"]
    assert "had to make room for a job of another project" in muster.ask("why", second)["summary"]
    assert reasons(muster) == {"mine": "evicting", "late": "room"}
    assert "1 job is stopped for it" in events(muster, mine)["claimed"]

    # Who makes room saves its work, and how it ends after that does not matter.
    lost = node_of(muster, second)
    (there / "save").touch()
    muster.await_states(mine, ["running"], within=60)
    assert node_of(muster, mine) == lost
    shown = muster.ask("show", second)
    assert [attempt["number"] for attempt in shown["attempts"]] == [1, 2]
    assert shown["attempts"][0]["saved_at"] is not None
    assert "begins anew" not in events(muster, second)["stopping"]
    assert events(muster, second)["attempt_failed"].endswith("another attempt follows")
    [begun, saved, left] = printed(muster, second, attempt=1)
    step = int(saved.split()[1].rstrip(":"))
    assert (begun, saved) == ("begins at 0", f"saved {step}: ['SIGTERM'] preempted, comes back: True")
    assert 0 < int(left.split()[1]) <= 30

    # It has kept its place before what came later, and goes on from its checkpoint on the other node.
    assert list(reasons(muster)) == ["train-2", "late"]
    (there / "end-train-1").touch()
    muster.await_states(second, ["running"], within=60)
    assert node_of(muster, second) != lost
    until(
        lambda: printed(muster, second, attempt=2) == [f"begins at {step}"],
        within=20,
        what="the job to go on from its checkpoint",
    )
    assert muster.ask("show", second)["phase"] == "running"
    assert muster.states(late) == ["queued"]


def two_teams(muster: Deployment) -> Path:
    """Two nodes, and two teams that are promised one each; a directory for their jobs."""
    for number, node in enumerate(muster.fleet.nodes[:2], start=1):
        driver = FakeNvml(muster.directory / f"nvml{number}", gpus=GPUS, node=number)
        muster.start_agent(node, env=driver.environ)
    muster.await_nodes(2)
    for team in ("ada", "bob"):
        assert muster.run("projects", "add", team).code == 0
        assert muster.run("projects", "allow", team, "--host-path", str(muster.directory)).code == 0
        assert muster.run("quota", "set", team, f"gpus={GPUS}", "min_runtime=0").code == 0
    assert muster.run("quota", "set", "default", "gpus=0").code == 0
    return muster.shared("there")


def training(name: str, team: str, there: Path) -> dict[str, Any]:
    """A job that counts until `end-NAME` appears, and saves its number when it is told to make room."""
    return {
        "name": name,
        "project": team,
        "class": "preemptible",
        "image": "muster/python:latest",
        "pull": "never",
        "command": ["python3", "-c", PROGRAM],
        "resources": {"gpus": GPUS, "cpus": "100m"},
        "mounts": [f"{there}:/there:rw"],
    }


def reasons(muster: Deployment) -> dict[str, str]:
    """The names of the queued jobs in their order, each with the reason why it waits."""
    return {line["name"]: line["reason"] for line in muster.ask("queue")}


def events(muster: Deployment, job: str) -> dict[str, str]:
    """The texts of the events of a job, by what happened."""
    return {event["kind"]: event["text"] for event in muster.ask("events", job)}


def node_of(muster: Deployment, job: str) -> str:
    [execution] = muster.executions(job)
    return str(execution["node"])


def printed(muster: Deployment, job: str, attempt: int) -> list[str]:
    """What an attempt has printed so far."""
    return muster.run("logs", job, "--attempt", str(attempt), "--no-prefix").out.splitlines()
