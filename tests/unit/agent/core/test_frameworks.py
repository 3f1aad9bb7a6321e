"""Each framework finds its peers in variables and files, whatever the number and the roles of the executions."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from agent.core.launching.frameworks.boosting import lightgbm
from agent.core.launching.launch import launch, port_requests
from muster.domain.gangs.plan import Launch
from muster.domain.gangs.roster import PortLease, Roster
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, LaunchPlace, Rendezvous
from muster.domain.jobs.job import Network, PortRequest, Role
from muster.domain.jobs.rules.framework_rules import ALWAYS_SET
from tests.unit.agent.core.gang_builders import SITE, found, framed, member, workers
from tests.unit.agent.core.ledger_builders import JOB, assignment, roster

SIZES = [1, 2, 3, 12]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("attempt", [1, 2])
def test_torchrun_is_told_all_that_it_needs_to_start_without_options(size: int, attempt: int) -> None:
    for rank, launched in enumerate(framed("pytorch", workers(size), gpus=8, attempt=attempt)):
        told = {name: value for name, value in launched.env.items() if name.startswith("PET_")}
        assert told == {
            "PET_NNODES": str(size),
            "PET_NODE_RANK": str(rank),
            "PET_NPROC_PER_NODE": "8",
            "PET_MASTER_ADDR": "10.0.0.1",
            "PET_MASTER_PORT": "20000",
            "PET_MAX_RESTARTS": "0",
            "PET_LOCAL_ADDR": f"10.0.0.{rank + 1}",
            "PET_RDZV_ID": f"j-{attempt}",
        }


def test_with_c10d_torchrun_finds_an_endpoint_and_no_master() -> None:
    told = framed("pytorch", workers(2), rendezvous=Rendezvous.C10D, restarts_in_place=2)[1].env
    assert (told["PET_RDZV_BACKEND"], told["PET_RDZV_ENDPOINT"]) == ("c10d", "10.0.0.1:20000")
    assert told["PET_MAX_RESTARTS"] == "2"
    assert {"PET_MASTER_ADDR", "PET_NODE_RANK"} & told.keys() == set()


@pytest.mark.parametrize(
    ("gpus", "said", "processes"), [(0, None, 1), (1, None, 1), (8, None, 8), (8, 2, 2), (0, 4, 4)]
)
def test_the_number_of_processes_is_said_or_that_of_the_gpus(gpus: int, said: int | None, processes: int) -> None:
    told = found(framed("pytorch", workers(2), gpus, processes=said)[0])
    assert {told["PET_NPROC_PER_NODE"], told["NPROC_PER_NODE"], told["MUSTER_PROCESSES"]} == {str(processes)}
    assert ("LOCAL_RANK" in told, "LOCAL_WORLD_SIZE" in told) == (processes == 1, processes == 1)
    assert told["OMP_NUM_THREADS"] == str(8 // processes)
    assert told["MUSTER_GPUS"] == str(gpus)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("gpus", [0, 1, 8])
def test_accelerate_has_a_configuration_that_counts_all_processes(size: int, gpus: int) -> None:
    for rank, launched in enumerate(framed("pytorch", workers(size), gpus)):
        said = yaml.safe_load(launched.config_files["accelerate.yaml"])
        assert (said["num_machines"], said["machine_rank"]) == (size, rank)
        assert said["num_processes"] == size * max(1, gpus)
        assert (said["main_process_ip"], said["main_process_port"]) == ("10.0.0.1", 20000)
        assert said["use_cpu"] is (gpus == 0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("network", Network)
def test_all_tensorflow_workers_have_one_cluster_and_a_task_of_their_own(size: int, network: Network) -> None:
    configs = [_tf_config(each) for each in framed("tensorflow", workers(size), network=network)]
    assert [config.pop("task") for config in configs] == [{"type": "worker", "index": rank} for rank in range(size)]
    assert all(config == configs[0] for config in configs)
    places = [place for role in configs[0]["cluster"].values() for place in role]
    assert len(set(places)) == size


def test_tensorflows_roles_are_those_of_the_job_and_the_evaluator_is_in_no_cluster() -> None:
    roles = ["chief", "worker", "worker", "ps", "evaluator"]
    configs = [_tf_config(each) for each in framed("tensorflow", roles)]
    assert {role: len(places) for role, places in configs[0]["cluster"].items()} == {"chief": 1, "worker": 2, "ps": 1}
    assert [config["task"] for config in configs] == [
        {"type": "chief", "index": 0},
        {"type": "worker", "index": 0},
        {"type": "worker", "index": 1},
        {"type": "ps", "index": 0},
        {"type": "evaluator", "index": 0},
    ]


def test_tensorflow_finds_the_same_in_its_file() -> None:
    launched = framed("tensorflow", workers(2))[1]
    assert json.loads(launched.config_files["tf_config.json"]) == _tf_config(launched)


def _tf_config(launched: Launch) -> Any:
    return json.loads(launched.env["TF_CONFIG"])


@pytest.mark.parametrize("size", SIZES)
def test_jax_finds_its_coordinator_its_number_and_its_devices(size: int) -> None:
    for rank, launched in enumerate(framed("jax", workers(size), gpus=4)):
        told = launched.env
        assert told["JAX_COORDINATOR_ADDRESS"] == "10.0.0.1:20000"
        assert (told["JAX_NUM_PROCESSES"], told["JAX_PROCESS_ID"]) == (str(size), str(rank))
        assert (told["SLURM_NTASKS"], told["SLURM_PROCID"], told["SLURM_LOCALID"]) == (str(size), str(rank), "0")
        assert told["SLURM_JOB_ID"] == "7"
        assert told["SLURM_STEP_NODELIST"] == ",".join(f"node-{number}" for number in range(size))
        assert told["JAX_LOCAL_DEVICE_IDS"] == "0,1,2,3"
        assert told.get("JAX_COORDINATOR_BIND_ADDRESS") == ("[::]:20000" if rank == 0 else None)
        assert told["LOCAL_RANK"] == "0"  # one process, whatever the number of its GPUs


def test_jax_without_gpus_is_told_of_no_devices() -> None:
    assert "JAX_LOCAL_DEVICE_IDS" not in framed("jax", workers(2))[0].env


@pytest.mark.parametrize("size", SIZES)
def test_xgboost_finds_the_tracker_of_rank_0(size: int) -> None:
    for rank, launched in enumerate(framed("xgboost", workers(size))):
        told = launched.env
        assert (told["DMLC_TRACKER_URI"], told["DMLC_TRACKER_PORT"]) == ("10.0.0.1", "20000")
        assert (told["DMLC_NUM_WORKER"], told["DMLC_TASK_ID"], told["DMLC_ROLE"]) == (str(size), str(rank), "worker")
        assert told["WORKER_ADDRS"].split(",") == [f"10.0.0.{number + 1}" for number in range(size)]


@pytest.mark.parametrize("size", SIZES)
def test_lightgbm_has_the_same_list_of_machines_everywhere(size: int) -> None:
    launches = framed("lightgbm", workers(size))
    lists = {launched.env["LIGHTGBM_MACHINES"] for launched in launches}
    assert len(lists) == 1
    machines = lists.pop().split(",")
    assert len(set(machines)) == size
    for rank, launched in enumerate(launches):
        assert machines[rank] == f"10.0.0.{rank + 1}:{launched.env['MUSTER_PORT_LIGHTGBM']}"
        written = launched.config_files["mlist.txt"].decode().splitlines()
        assert [line.replace(" ", ":") for line in written] == machines


@pytest.mark.parametrize("name", FrameworkName)
def test_what_a_framework_sets_is_what_the_rule_book_keeps_out_of_env(name: FrameworkName) -> None:
    without = launch(assignment(), roster(), SITE).env.keys()
    several = [framed(name, workers(2), gpus=1)]
    if name is FrameworkName.PYTORCH:
        several.append(framed(name, workers(2), gpus=1, rendezvous=Rendezvous.C10D))
    if name is FrameworkName.DEEPSPEED:
        several += [
            framed(name, workers(2), launch=LaunchPlace.ALL, rendezvous=rendezvous) for rendezvous in Rendezvous
        ]
    brought = {variable for launches in several for each in launches for variable in each.env} - without
    assert {each for each in brought if not each.startswith("MUSTER_")} == ALWAYS_SET[name]


def test_a_port_that_the_job_declares_itself_is_not_leased_twice() -> None:
    role = Role(command=("train",), ports=(PortRequest(name="tensorflow", port=2222),))
    framework = Framework(name=FrameworkName.TENSORFLOW)
    requests = port_requests(assignment(1, role=role, framework=framework))
    assert requests == (PortRequest(name="tensorflow", port=2222),)


def test_lists_of_very_large_gangs_stay_out_of_the_environment() -> None:
    lease = PortLease(name="lightgbm", host_port=20001, container_port=20001)
    members = [replace(member(assignment(rank, size=6000)), ports=(lease,)) for rank in range(6000)]
    brought = lightgbm(Roster.of(job=JOB, job_name="train", attempt=1, network=Network.HOST, members=members))
    assert brought.env == {}
    assert len(brought.files["mlist.txt"].splitlines()) == 6000
