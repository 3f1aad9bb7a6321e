"""User code finds its identity, its peers and its devices in the environment."""

import json
from dataclasses import replace
from typing import Any

from agent.core.launching.launch import launch
from agent.core.launching.site import LaunchSite, NetworkInterface
from muster.domain.data.checkpoint import CheckpointToRestore, JobCheckpoint
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import GpuUuid
from muster.domain.jobs.job import Network, Resources, Role
from muster.domain.jobs.placing.portion import GpuShare
from tests.unit.agent.core.ledger_builders import assignment, roster

SITE = LaunchSite(
    config="/muster/config",
    outputs="/muster/outputs",
    interface=NetworkInterface(name="eno1", subnet="10.0.0.0/24"),
)


def env(order: Assignment, site: LaunchSite = SITE) -> dict[str, str]:
    """The variables of a program in a container whose image sets none."""
    found = launch(order, roster(), site)
    return {**found.defaults, **found.env}


def test_torch_finds_its_rendezvous() -> None:
    found = env(assignment(1))
    wanted = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "20000", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    assert wanted.items() <= found.items()


def test_torchrun_takes_every_execution_for_a_node() -> None:
    assert {"NODE_RANK": "1", "NNODES": "2", "LOCAL_WORLD_SIZE": "1"}.items() <= env(assignment(1)).items()


def test_a_leased_port_has_a_variable_of_its_own() -> None:
    assert env(assignment(0))["MUSTER_PORT_MASTER"] == "20000"


def test_it_is_told_where_it_saves_and_what_it_goes_on_from() -> None:
    saves = Role(command=("train",), checkpoint=JobCheckpoint())
    site, restore = replace(SITE, checkpoint="/saved"), CheckpointToRestore(attempt=1, name="step-1", trees=())
    anew = env(assignment(1, role=saves), site)
    again = env(assignment(1, role=saves, restore=restore), site)

    assert (anew["MUSTER_CHECKPOINT_DIR"], anew["MUSTER_CHECKPOINT"]) == ("/saved", "")
    assert again["MUSTER_CHECKPOINT"] == "/saved/step-1"
    assert "MUSTER_CHECKPOINT" not in env(assignment(1))


def test_the_jobs_environment_does_not_touch_identity() -> None:
    role = Role(command=("train",), env={"RANK": "7", "LR": "0.1"})
    found = env(assignment(1, role=role))
    assert (found["RANK"], found["LR"]) == ("1", "0.1")


def test_collectives_are_told_the_interface_unless_the_job_says_otherwise() -> None:
    assert env(assignment())["GLOO_SOCKET_IFNAME"] == "eno1"
    own = Role(command=("train",), env={"GLOO_SOCKET_IFNAME": "ib0"})
    assert env(assignment(role=own))["GLOO_SOCKET_IFNAME"] == "ib0"
    assert "GLOO_SOCKET_IFNAME" not in env(assignment(), site=replace(SITE, interface=None))


def test_a_bridge_container_has_one_interface() -> None:
    role = Role(image="busybox", command=("train",))
    assert env(assignment(role=role, network=Network.BRIDGE))["NCCL_SOCKET_IFNAME"] == "=eth0"


def test_a_process_sees_only_its_own_gpus() -> None:
    found = env(assignment(gpus=(GpuUuid("GPU-a"), GpuUuid("GPU-b"))))
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert env(assignment())["CUDA_VISIBLE_DEVICES"] == ""


def test_whoever_has_a_portion_of_a_gpu_is_told_how_much_and_may_say_otherwise() -> None:
    half: dict[str, Any] = {"gpus": (GpuUuid("GPU-a"),), "gpu_share": GpuShare(500, 40 * 2**30)}
    found = env(assignment(**half))
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert (found["MUSTER_GPU_MEMORY"], found["XLA_PYTHON_CLIENT_MEM_FRACTION"]) == (str(40 * 2**30), "0.5")

    own = Role(command=("train",), env={"XLA_PYTHON_CLIENT_MEM_FRACTION": ".3"})
    assert env(assignment(role=own, **half))["XLA_PYTHON_CLIENT_MEM_FRACTION"] == ".3"
    assert not {"MUSTER_GPU_MEMORY", "XLA_PYTHON_CLIENT_MEM_FRACTION"} & env(assignment()).keys()


def test_a_container_without_gpus_is_kept_from_all_of_them() -> None:
    role = Role(image="busybox", command=("train",))
    assert env(assignment(role=role))["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_the_roster_files_are_those_of_the_rank() -> None:
    files = launch(assignment(1), roster(), SITE).config_files
    assert json.loads(files["distributed.json"])["self"]["member_id"] == "1"
    assert set(files) == {"distributed.json", "distributed.yaml", "hostfile", "hosts"}


def test_peers_have_names_without_dns_in_containers() -> None:
    container = assignment(role=Role(image="busybox", command=("train",), count=2))
    assert launch(container, roster(), SITE).host_names == {
        "worker-0": "10.0.0.1",
        "worker-1": "10.0.0.2",
    }
    assert launch(assignment(), roster(), SITE).host_names == {}


def test_nccl_takes_a_name_for_a_prefix_unless_it_is_told_otherwise() -> None:
    found = env(assignment())
    assert (found["NCCL_SOCKET_IFNAME"], found["GLOO_SOCKET_IFNAME"]) == ("=eno1", "eno1")


def test_open_mpi_is_told_the_subnet_where_the_node_knows_it() -> None:
    assert env(assignment())["OMPI_MCA_btl_tcp_if_include"] == "10.0.0.0/24"
    unknown = replace(SITE, interface=NetworkInterface(name="eno1"))
    assert "OMPI_MCA_btl_tcp_if_include" not in env(assignment(), unknown)


def test_ucx_of_a_plain_process_keeps_its_infiniband() -> None:
    assert "UCX_NET_DEVICES" not in env(assignment())
    assert env(assignment(role=Role(image="busybox")))["UCX_NET_DEVICES"] == "eno1"


def test_an_execution_that_is_several_processes_has_no_local_rank() -> None:
    eight = Role(command=("train",), resources=Resources(gpus=8))
    found = env(assignment(role=eight))
    assert (found["MUSTER_PROCESSES"], found["NPROC_PER_NODE"]) == ("8", "8")
    assert {"LOCAL_RANK", "LOCAL_WORLD_SIZE"} & found.keys() == set()


def test_everybody_knows_the_addresses_of_all() -> None:
    assert env(assignment())["MUSTER_ADDRESSES"] == "10.0.0.1,10.0.0.2"
