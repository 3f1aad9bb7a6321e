"""docs/roster.md names every key and every variable that user code finds, and no others."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from agent.core.launching.launch import launch
from agent.core.launching.site import LaunchSite, NetworkInterface
from agent.executions.directories import WORKER_MODULE
from muster.domain.data.job_input import JobInput
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import MASTER_PORT_NAME, Json, Member, PortLease, Roster, config_files
from muster.domain.ids import GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.job import Network, Role
from muster.domain.jobs.placing.portion import GpuShare
from tests.house.generate_stubs import ROOT

JOB = JobId("k3x9")
TEXT = (ROOT / "docs" / "roster.md").read_text()
PROCESS = Role(command=("true",), inputs=(JobInput(name="words", url="https://example.org/words"),))
CONTAINER = Role(image="busybox")


def _roster() -> Roster:
    member = Member(
        rank=0,
        execution=execution_id(JOB, 1, 0),
        role="worker",
        node=NodeId("gpu-a"),
        address="10.0.0.11",
        checked_in_at=datetime(2026, 1, 5, tzinfo=UTC),
        ports=(PortLease(name=MASTER_PORT_NAME, host_port=20_000, container_port=20_000),),
    )
    return Roster.of(job=JOB, job_name="ring", attempt=1, network=Network.HOST, members=(member,))


def _variables(role: Role, *gpus: str) -> set[str]:
    assignment = Assignment(
        execution=execution_id(JOB, 1, 0),
        job=JOB,
        job_name="ring",
        attempt=1,
        rank=0,
        world_size=1,
        local_rank=0,
        local_world_size=1,
        node_rank=0,
        node_count=1,
        role=role,
        network=Network.HOST,
        gpus=tuple(GpuUuid(gpu) for gpu in gpus),
        gpu_share=GpuShare(500, 40 * 2**30) if gpus else None,
    )
    interface = NetworkInterface(name="eth0", subnet="10.0.0.0/24")
    site = LaunchSite(
        config="/config",
        outputs="/outputs",
        status="/status",
        inputs="/inputs",
        code="/code",
        commit="ab" * 20,
        checkpoint="/saved",
        interface=interface,
    )
    found = launch(assignment, _roster(), site)
    return {*found.env, *found.defaults}


def _keys(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in {"ports", "exposed_ports"}:  # maps whose keys are the user's
                yield from _keys(inner)
    if isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def _first_cells() -> set[str]:
    """What stands in backquotes in the first cell of any row of the tables."""
    return {word for cell in re.findall(r"^\|([^|]+)\|", TEXT, re.MULTILINE) for word in re.findall(r"`([^`]+)`", cell)}


def test_every_variable_is_named_and_no_other() -> None:
    given = _variables(PROCESS, "GPU-1") | _variables(CONTAINER, "GPU-1") | _variables(CONTAINER)
    documented = {word for word in _first_cells() if re.fullmatch(r"[A-Z_<>]+[a-z_]*", word)}
    assert documented == {re.sub(r"^MUSTER_PORT_.*", "MUSTER_PORT_<NAME>", name) for name in given}


def test_every_key_of_the_roster_file_is_named_and_no_other() -> None:
    given = set(_keys(json.loads(config_files(_roster(), 0)["distributed.json"])))
    in_prose = {"config", "master", "port", "members", "self", "network"}
    documented = {word.removeprefix("network.") for word in _first_cells() if re.fullmatch(r"[a-z_.]+", word)}
    assert documented == (given - in_prose) | set(config_files(_roster(), 0)) | {WORKER_MODULE}
