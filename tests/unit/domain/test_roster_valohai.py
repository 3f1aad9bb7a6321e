"""The roster files mean the same to every reader: valohai-utils, YAML 1.1, YAML 1.2 and JSON."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import valohai
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from muster.domain.gangs.roster import CONFIG_FILES, MASTER_PORT_NAME, Member, PortLease, Roster, config_files
from muster.domain.ids import GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.job import Network

AMBIGUOUS = [
    "no",
    "on",
    "y",
    "null",
    "~",
    "true",
    "1e3",
    "0x10",
    "0o7",
    "010",
    "22:22",
    "1_000",
    "1.0",
    "2026-11-21",
    "-",
]
"""Names that some YAML reader takes for something else when they are not quoted."""

names = st.sampled_from(AMBIGUOUS) | st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"]),
    max_size=20,
)


def _roster(size: int, network: Network = Network.HOST, name: str = "digits", node: str = "gpu-vm") -> Roster:
    return _of(*_members(size, node), network=network, name=name)


def _of(*members: Member, network: Network = Network.HOST, name: str = "digits") -> Roster:
    return Roster.of(job=JobId("k3x9"), job_name=name, attempt=2, network=network, members=members)


def _members(size: int, node: str = "gpu-vm") -> tuple[Member, ...]:
    return tuple(
        Member(
            rank=rank,
            execution=execution_id(JobId("k3x9"), 2, rank),
            role="worker",
            node=NodeId(f"{node}{rank}" if node == "gpu-vm" else node),
            address=f"10.1.0.{11 + rank}",
            checked_in_at=datetime(2026, 1, 5, 9, 0, rank, 250_000, tzinfo=UTC),
            ports=(
                PortLease(name=MASTER_PORT_NAME, host_port=20_000 + rank, container_port=29_500),
                PortLease(name="ring", host_port=21_000 + rank, container_port=9_000),
            ),
            gpus=(GpuUuid(f"GPU-{rank}"),),
        )
        for rank in range(size)
    )


def _write(roster: Roster, rank: int, directory: Path) -> None:
    for name, content in config_files(roster, rank).items():
        (directory / name).write_bytes(content)


def test_every_member_has_the_same_files() -> None:
    assert [tuple(config_files(_roster(2), rank)) for rank in range(2)] == [CONFIG_FILES] * 2


@pytest.mark.parametrize("size", [1, 3, 12])
def test_valohai_utils_finds_itself_and_its_peers_on_every_rank(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VH_CONFIG_DIR", str(tmp_path))
    for rank in range(size):
        _write(_roster(size), rank, tmp_path)
        valohai.distributed.flush_state()
        assert valohai.distributed.is_distributed_task()
        assert valohai.distributed.group_name == "task-k3x9-2"
        assert valohai.distributed.required_count == size
        assert (valohai.distributed.rank, valohai.distributed.member_id) == (rank, str(rank))
        assert valohai.distributed.me().primary_local_ip == f"10.1.0.{11 + rank}"
        assert valohai.distributed.master().primary_local_ip == "10.1.0.11"
        assert [member.rank for member in valohai.distributed.members()] == list(range(size))
        assert valohai.distributed.me().job_id == f"exec-k3x9-2-{rank}"
    valohai.distributed.flush_state()


@pytest.mark.parametrize(
    ("network", "exposed"),
    [(Network.HOST, {}), (Network.BRIDGE, {"20000": "29500", "21000": "9000"})],
)
def test_valohai_utils_sees_published_ports_on_bridge_networking_only(
    network: Network, exposed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VH_CONFIG_DIR", str(tmp_path))
    _write(_roster(2, network), 1, tmp_path)
    valohai.distributed.flush_state()
    assert valohai.distributed.master().exposed_ports == exposed
    valohai.distributed.flush_state()


def test_times_are_naive_and_in_seconds_as_valohai_writes_them() -> None:
    document = json.loads(config_files(_roster(2), 0)["distributed.json"])
    assert [member["announce_time"] for member in document["members"]] == ["2026-01-05T09:00:00", "2026-01-05T09:00:01"]


@given(name=names, node=names, network=st.sampled_from(Network), rank=st.integers(0, 2))
def test_every_reader_of_yaml_loads_what_the_json_says(name: str, node: str, network: Network, rank: int) -> None:
    files = config_files(_roster(3, network, name, node), rank)
    document = json.loads(files["distributed.json"])
    assert yaml.safe_load(files["distributed.yaml"]) == document
    assert YAML(typ="safe", pure=True).load(io.BytesIO(files["distributed.yaml"])) == document
    assert document["config"]["job_name"] == name
    assert document["self"] == document["members"][rank]


def test_the_hostfile_has_one_line_a_node_with_its_members_as_slots() -> None:
    first, second, third = _members(3)
    shared = _of(first, replace(second, address=first.address), third)
    assert config_files(shared, 0)["hostfile"] == b"10.1.0.11 slots=2\n10.1.0.13 slots=1\n"


def test_hosts_names_every_member_by_its_place_in_its_role() -> None:
    first, second, third = _members(3)
    roles = _of(replace(first, role="master"), second, third)
    assert config_files(roles, 0)["hosts"] == b"10.1.0.11\tmaster-0\n10.1.0.12\tworker-0\n10.1.0.13\tworker-1\n"
