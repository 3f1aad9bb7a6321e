"""User code finds its identity, its peers and its devices in the environment."""

import json

from agent.core.launching.launch import launch
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import GpuUuid
from muster.domain.jobs.job import Network, Role
from tests.unit.agent.core.ledger_builders import assignment, roster

DIRECTORIES = ("/muster/config", "/muster/outputs")


def env(order: Assignment, interface: str | None = "eno1") -> dict[str, str]:
    return dict(launch(order, roster(), DIRECTORIES, interface).env)


def test_torch_finds_its_rendezvous() -> None:
    found = env(assignment(1))
    wanted = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "20000", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    assert wanted.items() <= found.items()


def test_torchrun_takes_every_execution_for_a_node() -> None:
    assert {"NODE_RANK": "1", "NNODES": "2", "LOCAL_WORLD_SIZE": "1"}.items() <= env(assignment(1)).items()


def test_a_leased_port_has_a_variable_of_its_own() -> None:
    assert env(assignment(0))["MUSTER_PORT_MASTER"] == "20000"


def test_the_jobs_environment_does_not_touch_identity() -> None:
    role = Role(command=("train",), env={"RANK": "7", "LR": "0.1"})
    found = env(assignment(1, role=role))
    assert (found["RANK"], found["LR"]) == ("1", "0.1")


def test_collectives_are_told_the_interface_unless_the_job_says_otherwise() -> None:
    assert env(assignment())["GLOO_SOCKET_IFNAME"] == "eno1"
    own = Role(command=("train",), env={"GLOO_SOCKET_IFNAME": "ib0"})
    assert env(assignment(role=own))["GLOO_SOCKET_IFNAME"] == "ib0"
    assert "GLOO_SOCKET_IFNAME" not in env(assignment(), interface=None)


def test_a_bridge_container_has_one_interface() -> None:
    role = Role(image="busybox", command=("train",))
    assert env(assignment(role=role, network=Network.BRIDGE))["NCCL_SOCKET_IFNAME"] == "eth0"


def test_a_process_sees_only_its_own_gpus() -> None:
    found = env(assignment(gpus=(GpuUuid("GPU-a"), GpuUuid("GPU-b"))))
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert env(assignment())["CUDA_VISIBLE_DEVICES"] == ""


def test_a_container_without_gpus_is_kept_from_all_of_them() -> None:
    role = Role(image="busybox", command=("train",))
    assert env(assignment(role=role))["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_the_roster_files_are_those_of_the_rank() -> None:
    files = launch(assignment(1), roster(), DIRECTORIES, None).config_files
    assert json.loads(files["distributed.json"])["self"]["member_id"] == "1"
    assert set(files) == {"distributed.json", "distributed.yaml", "hostfile", "hosts"}


def test_peers_have_names_without_dns_in_containers() -> None:
    container = assignment(role=Role(image="busybox", command=("train",), count=2))
    assert launch(container, roster(), DIRECTORIES, None).host_names == {
        "worker-0": "10.0.0.1",
        "worker-1": "10.0.0.2",
    }
    assert launch(assignment(), roster(), DIRECTORIES, None).host_names == {}
