"""What a job with a framework may be; `job_rules` asks it for every job that has one."""

from collections.abc import Iterator, Mapping

from muster.domain.fault import Fault
from muster.domain.jobs.frameworks.framework import (
    LAUNCH_PLACES,
    MOST_PROCESSES,
    MOST_RESTARTS_IN_PLACE,
    Framework,
    FrameworkName,
    LaunchPlace,
    Rendezvous,
)
from muster.domain.jobs.frameworks.tensorflow_roles import CHIEFS, ROLES
from muster.domain.jobs.job import JobSpec, Network
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.rules import job_values
from muster.domain.quoting import nearest, quote

_OF_TORCHRUN = frozenset(
    {
        *("PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
        *("PET_MAX_RESTARTS", "PET_LOCAL_ADDR", "PET_RDZV_ID", "PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT"),
    }
)
_OF_MPIRUN = frozenset(
    {
        *("OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile"),
        *("PRTE_MCA_plm_ssh_agent", "PRTE_MCA_prte_default_hostfile"),
        *("HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC", "HYDRA_HOST_FILE"),
        *("I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC", "I_MPI_HYDRA_HOST_FILE"),
        "PDSH_RCMD_TYPE",
    }
)

ALWAYS_SET: Mapping[FrameworkName, frozenset[str]] = {
    FrameworkName.PYTORCH: _OF_TORCHRUN,
    FrameworkName.TENSORFLOW: frozenset({"TF_CONFIG"}),
    FrameworkName.JAX: frozenset(
        {
            *("JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"),
            *("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID", "JAX_LOCAL_DEVICE_IDS"),
            *("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
        }
    ),
    FrameworkName.XGBOOST: frozenset(
        {
            *("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_NUM_WORKER", "DMLC_TASK_ID", "DMLC_ROLE"),
            *("WORKER_ADDRS", "WORKER_PORT"),
        }
    ),
    FrameworkName.LIGHTGBM: frozenset({"LIGHTGBM_MACHINES"}),
    FrameworkName.DEEPSPEED: _OF_TORCHRUN | _OF_MPIRUN,
    FrameworkName.MPI: _OF_MPIRUN,
    FrameworkName.HOROVOD: _OF_MPIRUN,
    FrameworkName.RAY: frozenset({"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}),
}
"""Variables that a framework's members find each other by; a job that sets one of them would be torn apart."""


MOST_IN_TF_CONFIG = 2000
"""Executions that TensorFlow can have: a variable names all of them, and Linux takes none above 128 KiB."""


def framework_faults(spec: JobSpec, framework: Framework) -> Iterator[Fault]:
    """Everything that is wrong with the framework of a job, and with the job because of it."""
    yield from _numbers(framework)
    yield from _only_pytorch(framework)
    yield from _launch(framework)
    if framework.starts_elsewhere:
        yield from _starting_elsewhere(spec, framework.name)
    if framework.name is FrameworkName.TENSORFLOW:
        yield from _tensorflow(spec)
    if framework.name is FrameworkName.LIGHTGBM and spec.network is Network.BRIDGE:
        message = "bridge hides its own address from lightgbm, which finds itself by it in the list; use network: host"
        yield Fault(path=("network",), message=message)
    if framework.name is FrameworkName.RAY:
        yield from _ray(spec)
    for number, role in enumerate(spec.roles):
        for variable in sorted(role.env.keys() & ALWAYS_SET[framework.name]):
            message = f"is set by framework {framework.name}; take it out of env"
            yield Fault(path=("roles", number, "env", variable), message=message)


def _launch(framework: Framework) -> Iterator[Fault]:
    allowed = LAUNCH_PLACES[framework.name]
    if framework.place not in allowed:
        where = "on rank 0 alone" if LaunchPlace.RANK0 in allowed else "in every execution"
        message = f"cannot be {framework.place}: with {framework.name} the command runs {where}"
        yield Fault(path=("framework", "launch"), message=message)


def _starting_elsewhere(spec: JobSpec, name: FrameworkName) -> Iterator[Fault]:
    """What would keep rank 0 from starting the processes of the other executions, or these from ending."""
    if spec.network is Network.BRIDGE:
        message = f"{name} opens ports that it does not declare; use network: host"
        yield Fault(path=("network",), message=message)
    if spec.max_per_node not in {None, 1}:
        message = f"must be 1: with {name} every node has one execution; use resources.gpus and framework.processes"
        yield Fault(path=("max_per_node",), message=message)
    if spec.success is not None and spec.deciding != range(1):
        message = f"must be {SuccessRule.RANK0}: with {name} the other executions wait until they are stopped"
        yield Fault(path=("success",), message=message)
    if spec.gang_commands is False:
        message = f"must be true: with {name} rank 0 starts processes in the other executions"
        yield Fault(path=("gang_commands",), message=message)


def _ray(spec: JobSpec) -> Iterator[Fault]:
    if spec.network is Network.BRIDGE:
        yield Fault(path=("network",), message="bridge lets nobody through to ports that ray opens; use network: host")
    for number, role in enumerate(spec.roles):
        if not role.command and spec.interactive is None:
            message = "is missing: with ray the nodes of the cluster start before it, and an image's own is not known"
            yield Fault(path=("roles", number, "command"), message=message)


def _numbers(framework: Framework) -> Iterator[Fault]:
    if framework.processes is not None and not 1 <= framework.processes <= MOST_PROCESSES:
        message = f"must be gpu or a whole number from 1 to {MOST_PROCESSES}, not {framework.processes}"
        yield Fault(path=("framework", "processes"), message=message)
    elif not framework.is_launched and framework.processes not in {None, 1}:
        message = f"cannot be {framework.processes}: {framework.name} has one process in each execution; use workers"
        yield Fault(path=("framework", "processes"), message=message)
    if wrong := job_values.number(framework.restarts_in_place, 0, MOST_RESTARTS_IN_PLACE):
        yield Fault(path=("framework", "restarts_in_place"), message=wrong.message)


def _only_pytorch(framework: Framework) -> Iterator[Fault]:
    if framework.name is FrameworkName.PYTORCH:
        return
    said = {
        "rendezvous": framework.rendezvous is not Rendezvous.STATIC,
        "restarts_in_place": framework.restarts_in_place,
    }
    for key in (key for key, value in said.items() if value):
        yield Fault(path=("framework", key), message=f"is for pytorch alone, and the framework is {framework.name}")


def _tensorflow(spec: JobSpec) -> Iterator[Fault]:
    if spec.size > MOST_IN_TF_CONFIG:
        message = f"has {spec.size} executions; tensorflow has at most {MOST_IN_TF_CONFIG}, as TF_CONFIG names all"
        yield Fault(path=("roles",), message=message)
    known = f"{', '.join(ROLES[:-1])} and {ROLES[-1]}"
    for number, role in enumerate(spec.roles):
        path = ("roles", number, "name")
        if role.name not in ROLES:
            message = f"tensorflow knows {known}, not {quote(role.name)}"
            yield Fault(path=path, message=message, suggestion=nearest(role.name, ROLES))
        elif role.name in CHIEFS and role.count > 1:
            yield Fault(path=("roles", number, "count"), message=f"must be 1: tensorflow has at most one {role.name}")
    if {role.name for role in spec.roles} >= set(CHIEFS):
        place = max(number for number, role in enumerate(spec.roles) if role.name in CHIEFS)
        message = f"is the same to tensorflow as the other of {' and '.join(CHIEFS)}; keep one of them"
        yield Fault(path=("roles", place, "name"), message=message)
