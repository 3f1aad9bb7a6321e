"""User code that was written for another system finds that system's variables and files, whatever the gang is like."""

import json
from typing import Any

import pytest
import yaml

from agent.core.launching.dialects.node_list import expanded
from agent.core.launching.launch import launch
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Launch
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, Rendezvous
from muster.domain.jobs.job import Network
from muster.domain.jobs.rules.dialect_rules import SET_BY_DIALECTS
from tests.unit.agent.core.gang_builders import SITE, found, gang, launched, workers
from tests.unit.agent.core.ledger_builders import assignment, roster

SIZES = [1, 3, 12]
ROLES = ["master", "worker", "worker"]
PLAIN = LaunchSite(config="/s/config", outputs="/s/outputs", inputs="/s/inputs", workdir="/s/work")


def told(name: str, roles: list[str], gpus: int = 0, **changes: Any) -> list[Launch]:
    """What each execution of a job with one dialect finds, by rank."""
    site = changes.pop("site", SITE)
    nodes = changes.pop("nodes", ())
    return launched(gang(roles, gpus, dialects=(Dialect(name),), **changes), nodes, site)


@pytest.mark.parametrize("dialect", Dialect)
def test_what_a_dialect_sets_is_what_the_rule_book_keeps_out_of_env(dialect: Dialect) -> None:
    without = launch(assignment(), roster(), SITE).env.keys()
    brought = {variable for each in told(dialect, workers(2), gpus=1) for variable in each.env} - without
    assert {name for name in brought if not name.startswith("MUSTER_")} == SET_BY_DIALECTS[dialect]


def test_no_two_dialects_set_the_same_variable() -> None:
    names = [name for names in SET_BY_DIALECTS.values() for name in names]
    assert len(names) == len(set(names))
    both = launched(gang(workers(2), dialects=tuple(Dialect)))[1]
    assert {*names, "SLURM_GPUS_ON_NODE"} - both.env.keys() == {"SLURM_GPUS_ON_NODE"}


@pytest.mark.parametrize("dialect", Dialect)
def test_nothing_of_a_dialect_is_there_unless_it_is_asked_for(dialect: Dialect) -> None:
    assert not SET_BY_DIALECTS[dialect] & launched(gang(workers(2)))[0].env.keys()


@pytest.mark.parametrize("dialect", Dialect)
def test_the_variables_that_say_who_somebody_is_stay_as_they_are(dialect: Dialect) -> None:
    plain, spoken = launched(gang(workers(3)))[2].env, told(dialect, workers(3))[2].env
    assert {name: spoken[name] for name in plain} == plain


def test_only_slurm_brings_programs() -> None:
    scripts = {"batch", "sbcast", "scancel", "scontrol", "squeue", "srun"}
    brought = {dialect: set(told(dialect, workers(2))[1].programs) for dialect in Dialect}
    assert brought == {each: scripts if each is Dialect.SLURM else set() for each in Dialect}


class TestSlurm:
    @pytest.mark.parametrize(("gang_commands", "first"), [(False, None), (True, "/bin/sh")])
    def test_rank_0_has_a_parent_that_scancel_can_call(self, gang_commands: bool, first: str | None) -> None:
        launches = told("slurm", workers(3), gang_commands=gang_commands)
        roles = [each.role for each in launches]
        assert [role.command[0] if role else None for role in roles] == [first, None, None]
        assert roles[0] is None or roles[0].command[1] == f"{SITE.config}/bin/batch"

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("attempt", [1, 2])
    def test_each_execution_is_one_task_on_a_node_of_its_own(self, size: int, attempt: int) -> None:
        for rank, each in enumerate(told("slurm", workers(size), attempt=attempt)):
            env = each.env
            assert (env["SLURM_JOB_ID"], env["SLURM_JOBID"], env["SLURM_JOB_NAME"]) == ("7", "7", "train")
            assert (env["SLURM_NTASKS"], env["SLURM_NPROCS"]) == (str(size), str(size))
            assert (env["SLURM_NNODES"], env["SLURM_JOB_NUM_NODES"]) == (str(size), str(size))
            assert (env["SLURM_PROCID"], env["SLURM_NODEID"], env["SLURM_LOCALID"]) == (str(rank), str(rank), "0")
            assert (env["SLURM_GTIDS"], env["SLURM_NTASKS_PER_NODE"]) == (str(rank), "1")
            assert env["SLURM_TASKS_PER_NODE"] == (f"1(x{size})" if size > 1 else "1")
            assert (env["SLURM_CPUS_PER_TASK"], env["SLURM_CPUS_ON_NODE"]) == ("8", "8")
            assert env["SLURM_RESTART_COUNT"] == str(attempt - 1)
            assert env["SLURM_LAUNCH_NODE_IPADDR"] == env["MASTER_ADDR"] == "10.0.0.1"
            assert "SLURM_GPUS_ON_NODE" not in env

    @pytest.mark.parametrize("size", SIZES)
    def test_a_plain_process_finds_addresses_which_need_no_resolver(self, size: int) -> None:
        for rank, each in enumerate(told("slurm", workers(size))):
            addresses = [f"10.0.0.{number + 1}" for number in range(size)]
            for name in ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST"):
                assert expanded(each.env[name]) == addresses
            assert each.env["SLURMD_NODENAME"] == addresses[rank]
            assert each.host_names == {}

    @pytest.mark.parametrize("network", Network)
    def test_a_container_finds_the_names_of_nodes_and_can_resolve_them(self, network: Network) -> None:
        [*_, last] = told("slurm", workers(3), image="trainer:1", network=network)
        assert last.env["SLURM_JOB_NODELIST"] == "node-[0-2]"
        assert last.env["SLURMD_NODENAME"] == "node-2"
        assert {name: last.host_names[name] for name in ("node-0", "worker-2")} == {
            "node-0": "10.0.0.1",
            "worker-2": "10.0.0.3",
        }
        assert b"10.0.0.1\tnode-0\n" in last.config_files["hosts"]

    @pytest.mark.parametrize("nodes", [["gpu-a", "gpu-a", "gpu-b"], ["gpu-a", "worker-0", "gpu-b"]])
    def test_containers_that_share_a_node_go_by_the_names_of_executions(self, nodes: list[str]) -> None:
        each = told("slurm", workers(3), image="trainer:1", nodes=nodes)[1]
        assert each.env["SLURM_JOB_NODELIST"] == "worker-[0-2]"
        assert each.host_names["worker-0"] == "10.0.0.1"

    def test_of_several_processes_an_execution_is_told_the_first(self) -> None:
        env = told("slurm", workers(3), gpus=4)[1].env
        assert (env["SLURM_NTASKS"], env["SLURM_TASKS_PER_NODE"]) == ("12", "4(x3)")
        assert (env["SLURM_PROCID"], env["SLURM_GTIDS"], env["SLURM_NTASKS_PER_NODE"]) == ("4", "4,5,6,7", "4")
        assert (env["SLURM_GPUS_ON_NODE"], env["SLURM_CPUS_PER_TASK"], env["SLURM_CPUS_ON_NODE"]) == ("4", "2", "8")

    def test_with_jax_there_is_one_task_for_each_execution(self) -> None:
        jax = Framework(name=FrameworkName.JAX, processes=1)
        env = told("slurm", workers(2), gpus=4, framework=jax)[1].env
        assert (env["SLURM_NTASKS"], env["SLURM_PROCID"], env["JAX_NUM_PROCESSES"]) == ("2", "1", "2")

    def test_the_directory_of_the_submit_is_the_working_directory(self) -> None:
        assert told("slurm", workers(1), site=PLAIN)[0].env["SLURM_SUBMIT_DIR"] == "/s/work"
        assert told("slurm", workers(1), image="trainer:1")[0].env["SLURM_SUBMIT_DIR"] == "."


class TestValohai:
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("attempt", [1, 2])
    def test_variables_and_files_agree_who_an_execution_is(self, size: int, attempt: int) -> None:
        for rank, each in enumerate(told("valohai", workers(size), attempt=attempt)):
            roster = json.loads(each.config_files["distributed.json"])
            assert roster == yaml.safe_load(each.config_files["distributed.yaml"])
            assert each.env["VH_JOB_ID"] == roster["self"]["job_id"] == f"exec-j-{attempt}-{rank}"
            assert each.env["VH_DIST_MEMBER_ID"] == roster["config"]["member_id"] == str(rank)
            assert each.env["VH_DIST_MEMBER_COUNT"] == str(roster["config"]["required_count"]) == str(size)
            assert each.env["VH_TASK_ID"] == roster["config"]["group_name"].removeprefix("task-") == f"j-{attempt}"
            assert roster["self"]["network"]["public_ips"] == roster["self"]["network"]["local_ips"]
            assert each.env["VH_PUBLIC_IP"] == each.env["VH_LOCAL_IP"] == f"10.0.0.{rank + 1}"

    def test_without_the_dialect_no_member_has_a_public_address(self) -> None:
        roster = json.loads(launched(gang(workers(2)))[0].config_files["distributed.json"])
        assert [member["network"]["public_ips"] for member in roster["members"]] == [[], []]

    def test_the_file_of_the_execution_is_the_same_in_both_forms(self) -> None:
        files = told("valohai", workers(2), image="trainer:1")[1].config_files
        execution = json.loads(files["execution.json"])
        assert execution == yaml.safe_load(files["execution.yaml"])
        assert execution == {
            "valohai.execution-id": "j-1-1",
            "valohai.execution-counter": 7,
            "valohai.execution-title": "train",
            "valohai.execution-step": "worker",
            "valohai.execution-ctime": "2026-11-21T09:00:00+00:00",
            "valohai.execution-status": "created",
            "valohai.execution-image": "trainer:1",
            "valohai.execution-tags": [],
            "valohai.project-id": "default",
            "valohai.project-name": "default",
            "valohai.task-id": "j-1",
        }

    def test_a_container_has_the_directories_where_valohai_has_them(self) -> None:
        env = told("valohai", workers(1), image="trainer:1")[0].env
        assert [env[f"VH_{name}_DIR"] for name in ("CONFIG", "INPUTS", "OUTPUTS", "REPOSITORY")] == [
            "/valohai/config",
            "/valohai/inputs",
            "/valohai/outputs",
            "/valohai/repository",
        ]

    def test_a_plain_process_has_directories_of_its_own(self) -> None:
        env = told("valohai", workers(1), site=PLAIN)[0].env
        assert [env[f"VH_{name}_DIR"] for name in ("CONFIG", "INPUTS", "OUTPUTS", "REPOSITORY")] == [
            "/s/config",
            "/s/inputs",
            "/s/outputs",
            "/s/work",
        ]


class TestRunai:
    def test_pods_are_numbered_within_their_role_and_can_be_resolved(self) -> None:
        launches = told("runai", ROLES, image="trainer:1")
        names = ["train-master-0", "train-worker-0", "train-worker-1"]
        assert [each.env["POD_NAME"] for each in launches] == names
        assert [each.env["POD_INDEX"] for each in launches] == ["0", "0", "1"]
        assert [launches[0].host_names[name] for name in names] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
        assert b"10.0.0.3\ttrain-worker-1\n" in launches[0].config_files["hosts"]

    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("gpus", [0, 4])
    def test_torchrun_has_its_options_and_the_job_may_replace_them(self, size: int, gpus: int) -> None:
        for rank, each in enumerate(told("runai", workers(size), gpus)):
            assert {name: value for name, value in each.defaults.items() if name.startswith("PET_")} == {
                "PET_NNODES": str(size),
                "PET_NODE_RANK": str(rank),
                "PET_NPROC_PER_NODE": str(max(1, gpus)),
                "PET_MASTER_ADDR": "10.0.0.1",
                "PET_MASTER_PORT": "20000",
            }
            assert each.defaults["PYTHONUNBUFFERED"] == "1"
            assert each.env["RUNAI_NUM_OF_GPUS"] == str(gpus)

    def test_with_pytorch_the_framework_alone_says_torchruns_options(self) -> None:
        framework = Framework(name=FrameworkName.PYTORCH, rendezvous=Rendezvous.C10D)
        env = found(told("runai", workers(2), framework=framework)[1])
        assert "PET_MASTER_ADDR" not in env
        assert env["PET_RDZV_BACKEND"] == "c10d"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("gpus", [0, 4])
def test_skypilot_code_finds_all_addresses_and_its_own_number(size: int, gpus: int) -> None:
    for rank, each in enumerate(told("skypilot", workers(size), gpus)):
        assert {name: value for name, value in each.env.items() if name.startswith("SKYPILOT_")} == {
            "SKYPILOT_NODE_RANK": str(rank),
            "SKYPILOT_NODE_IPS": "\n".join(f"10.0.0.{number + 1}" for number in range(size)),
            "SKYPILOT_NUM_NODES": str(size),
            "SKYPILOT_NUM_GPUS_PER_NODE": str(gpus),
            "SKYPILOT_TASK_ID": "j",
        }


def test_the_variables_of_a_dialect_count_more_than_the_frameworks() -> None:
    jax = Framework(name=FrameworkName.JAX, processes=1)
    assert told("slurm", workers(3), framework=jax)[0].env["SLURM_STEP_NODELIST"] == "10.0.0.[1-3]"
