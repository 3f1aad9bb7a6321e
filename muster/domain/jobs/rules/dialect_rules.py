"""What a job with dialects may be; `job_rules` asks it for every job that has some."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from muster.domain.fault import Fault
from muster.domain.jobs.frameworks.dialect import VALOHAI_DIRECTORY, Dialect
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.rules import job_values
from muster.domain.quoting import nearest, quote

SET_BY_DIALECTS: Mapping[Dialect, frozenset[str]] = {
    Dialect.SLURM: frozenset(
        {
            *("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_NODELIST"),
            *("SLURM_STEP_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_NTASKS", "SLURM_NPROCS"),
            *("SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"),
            *("SLURM_GTIDS", "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "SLURM_GPUS_ON_NODE", "SLURMD_NODENAME"),
            *("SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "SLURM_JOB_PARTITION", "SLURM_RESTART_COUNT"),
            "SLURM_LAUNCH_NODE_IPADDR",
        }
    ),
    Dialect.VALOHAI: frozenset(
        {
            *("VH_CONFIG_DIR", "VH_INPUTS_DIR", "VH_OUTPUTS_DIR", "VH_REPOSITORY_DIR", "VH_JOB_ID"),
            *("VH_EXECUTION_ID", "VH_TASK_ID", "VH_PROJECT_ID", "VH_DIST_MEMBER_ID", "VH_DIST_MEMBER_INDEX"),
            *("VH_DIST_MEMBER_COUNT", "VH_LOCAL_IP", "VH_PUBLIC_IP"),
        }
    ),
    Dialect.RUNAI: frozenset(
        {
            *("RUNAI_PROJECT", "RUNAI_JOB_NAME", "JOB_NAME", "RUNAI_JOB_UUID", "JOB_UUID", "RUNAI_NUM_OF_GPUS"),
            *("NODE_NAME", "POD_INDEX", "POD_NAME"),
        }
    ),
    Dialect.SKYPILOT: frozenset(
        {
            *("SKYPILOT_NODE_RANK", "SKYPILOT_NODE_IPS", "SKYPILOT_NUM_NODES", "SKYPILOT_NUM_GPUS_PER_NODE"),
            "SKYPILOT_TASK_ID",
        }
    ),
}
"""Variables that tell user code its place; a job that sets one of them would tell it another."""

NEVER_WITH_VALOHAI = "VALOHAI_PORT"
"""The variable by which valohai-utils takes its process for a deployment, and prints its metadata otherwise."""


def dialect_faults(spec: JobSpec) -> Iterator[Fault]:
    """Everything that is wrong with the dialects of a job, and with the job because of them."""
    for place, dialect in enumerate(spec.dialects):
        if dialect not in set(Dialect):
            message = f"must be {', '.join(list(Dialect)[:-1])} or {list(Dialect)[-1]}, not {quote(str(dialect))}"
            yield Fault(path=("dialects", place), message=message, suggestion=nearest(str(dialect), Dialect))
        elif (first := spec.dialects.index(dialect)) != place:
            wrong = job_values.twice("the dialect", dialect, f"dialects[{first}]")
            yield Fault(path=("dialects", place), message=wrong.message)
    for number, role in enumerate(spec.roles):
        for dialect in sorted(set(Dialect) & set(spec.dialects)):
            yield from _variables(role, dialect, number)
        if Dialect.VALOHAI in spec.dialects:
            yield from _valohai(role, number)


def _variables(role: Role, dialect: Dialect, number: int) -> Iterator[Fault]:
    ours = SET_BY_DIALECTS[dialect]
    for variable in sorted(role.env.keys() & ours):
        message = f"is set by the dialect {dialect}; take it out of env"
        yield Fault(path=("roles", number, "env", variable), message=message)
    for place, use in enumerate(role.secrets):
        for variable in sorted(use.env.keys() & ours):
            message = f"sets {variable}, which the dialect {dialect} sets; use another name"
            yield Fault(path=("roles", number, "secrets", place, "env"), message=message)


def _valohai(role: Role, number: int) -> Iterator[Fault]:
    """What would hide the directories of the dialect, or keep valohai-utils from looking at them."""
    if NEVER_WITH_VALOHAI in role.env:
        message = "tells valohai-utils that it is in a deployment; take it out of env"
        yield Fault(path=("roles", number, "env", NEVER_WITH_VALOHAI), message=message)
    if role.image is None:
        return
    for place, mount in enumerate(role.mounts):
        target = PurePosixPath(mount.target)
        if target == PurePosixPath(VALOHAI_DIRECTORY) or _below(target, "config", "outputs"):
            message = f"covers {target}, which the dialect valohai fills itself"
            yield Fault(path=("roles", number, "mounts", place, "target"), message=message)
    yield from _covering_volumes(role, number)
    for place, file in enumerate(role.files):
        if _below(PurePosixPath(file.path), *_DIRECTORIES):
            message = f"{quote(file.path)} is in a directory that the dialect valohai fills itself"
            yield Fault(path=("roles", number, "files", place, "path"), message=message)
    for place, use in enumerate(role.secrets):
        if use.directory is not None and _below(PurePosixPath(use.directory), *_DIRECTORIES):
            message = f"{quote(use.directory)} is in a directory that the dialect valohai fills itself"
            yield Fault(path=("roles", number, "secrets", place, "directory"), message=message)


def _covering_volumes(role: Role, number: int) -> Iterator[Fault]:
    for volume in role.volumes:
        target = PurePosixPath(volume.target)
        if target == PurePosixPath(VALOHAI_DIRECTORY) or _below(target, *_DIRECTORIES):
            message = f"covers {target}, which the dialect valohai fills itself"
            yield Fault(path=("roles", number, "volumes", volume.name, "path"), message=message)


_DIRECTORIES = ("config", "inputs", "outputs")


def _below(path: PurePosixPath, *directories: str) -> bool:
    return any(path.is_relative_to(f"{VALOHAI_DIRECTORY}/{each}") for each in directories)
