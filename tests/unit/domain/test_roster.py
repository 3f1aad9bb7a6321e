"""A roster is a table of texts: its members come back from it, and the files that are made of it have known bytes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from muster.domain.gangs.roster import Member, PortLease, Roster, config_files, host_names
from muster.domain.ids import GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.job import Network

JOB = JobId("k3x9")
MASTER = Member(
    rank=0,
    execution=execution_id(JOB, 2, 0),
    role="master",
    node=NodeId("gpu-a"),
    address="10.1.0.11",
    checked_in_at=datetime(2026, 1, 5, 9, 0, 0, 250_000, tzinfo=UTC),
    ports=(PortLease(name="master", host_port=20_000, container_port=29_500),),
    gpus=(GpuUuid("GPU-0"), GpuUuid("GPU-1")),
)
WORKER = Member(
    rank=1,
    execution=execution_id(JOB, 2, 1),
    role="worker",
    node=NodeId("gpu-b"),
    address="fe80::1%eth0",
    checked_in_at=datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC),
)

MASTER_LINE = (
    b'{"announce_time": "2026-01-05T09:00:00", "identity": "gpu-a", "job_id": "exec-k3x9-2-0", "member_id": "0", '
    b'"network": {"exposed_ports": {"20000": "29500"}, "local_ips": ["10.1.0.11"], "public_ips": []}, "rank": 0, '
    b'"role": "master", "name": "master-0", "node": "gpu-a", "address": "10.1.0.11", "ports": {"master": 20000}, '
    b'"gpus": ["GPU-0", "GPU-1"]}'
)
WORKER_LINE = (
    b'{"announce_time": "2026-01-05T09:00:01", "identity": "gpu-b", "job_id": "exec-k3x9-2-1", "member_id": "1", '
    b'"network": {"exposed_ports": {}, "local_ips": ["fe80::1%eth0"], "public_ips": []}, "rank": 1, '
    b'"role": "worker", "name": "worker-0", "node": "gpu-b", "address": "fe80::1%eth0", "ports": {}, "gpus": []}'
)
CONFIG = (
    b'{"group_name": "task-k3x9-2", "member_id": "1", "required_count": 2, "job_id": "k3x9", "job_name": "ring", '
    b'"attempt": 2, "rank": 1, "world_size": 2}'
)


def roster(*members: Member) -> Roster:
    return Roster.of(job=JOB, job_name="ring", attempt=2, network=Network.BRIDGE, members=members)


def test_members_come_back_from_the_table_to_the_second() -> None:
    assert roster(MASTER, WORKER).members == (
        replace(MASTER, checked_in_at=datetime(2026, 1, 5, 9, 0, 0, tzinfo=UTC)),
        WORKER,
    )


def test_user_code_listens_on_the_ports_of_its_container() -> None:
    assert [roster(MASTER, WORKER).listened(rank) for rank in (0, 1)] == [{"master": 29_500}, {}]


def test_without_a_master_port_there_is_no_master() -> None:
    gang = roster(replace(MASTER, ports=()), WORKER)
    with pytest.raises(LookupError, match="rank 0 of k3x9 has no port named master"):
        config_files(gang, 1)


def test_names_are_counted_within_the_role() -> None:
    gang = roster(MASTER, WORKER, replace(WORKER, rank=2, address="10.1.0.13"))
    assert host_names(gang) == {"master-0": "10.1.0.11", "worker-0": "fe80::1%eth0", "worker-1": "10.1.0.13"}


def test_the_files_of_a_member_have_these_bytes() -> None:
    assert config_files(roster(MASTER, WORKER), 1) == {
        "distributed.json": b'{\n  "config": ' + CONFIG + b',\n  "master": {"address": "10.1.0.11", "port": 20000},\n'
        b'  "members": [\n    '
        + MASTER_LINE
        + b",\n    "
        + WORKER_LINE
        + b'\n  ],\n  "self": '
        + WORKER_LINE
        + b"\n}\n",
        "distributed.yaml": b'"config": ' + CONFIG + b'\n"master": {"address": "10.1.0.11", "port": 20000}\n'
        b'"members":\n  - ' + MASTER_LINE + b"\n  - " + WORKER_LINE + b'\n"self": ' + WORKER_LINE + b"\n",
        "hostfile": b"10.1.0.11 slots=1\nfe80::1%eth0 slots=1\n",
        "hosts": b"10.1.0.11\tmaster-0\nfe80::1%eth0\tworker-0\n",
    }
