"""What user code finds when it starts: its environment and the roster files."""

from collections.abc import Mapping
from dataclasses import replace

from agent.core.launching.dialects.known_dialects import spoken
from agent.core.launching.expansion import expanded
from agent.core.launching.frameworks.known_frameworks import surroundings, with_framework_port
from agent.core.launching.frameworks.surroundings import if_short
from agent.core.launching.main_program import setup_words, with_main_program
from agent.core.launching.network_defaults import network_defaults
from agent.core.launching.site import LaunchSite
from muster.domain.data.checkpoint import CHECKPOINT_DIRECTORY_VARIABLE, CHECKPOINT_VARIABLE
from muster.domain.data.code import CODE_COMMIT_VARIABLE, CODE_DIRECTORY_VARIABLE
from muster.domain.data.job_input import INPUTS_DIRECTORY_VARIABLE
from muster.domain.fleet.secret import Handover
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.gangs.roster import HOSTFILE, Roster, config_files, host_names
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.job import PortRequest, Role, RuntimeKind
from muster.domain.jobs.placing.portion import WHOLE_GPU
from muster.domain.jobs.ports import ports_of

CONTAINER_CONFIG = "/muster/config"
"""Where a container sees the roster files."""
CONTAINER_OUTPUTS = "/muster/outputs"
"""Where a container leaves what is to be kept."""
CONTAINER_STATUS = "/muster/status"
"""Where a container tells its agent how far it is."""
CONTAINER_RUN = f"{CONTAINER_CONFIG}/run"
"""Where a container sees the door of its execution, as soon as there is one."""
CONTAINER_FIRST = "/muster/first"
"""Where a container has the program in front of user code."""
CONTAINER_HOME = "/muster/home"
"""The home directory of users that the image need not know."""


def launch(assignment: Assignment, roster: Roster, site: LaunchSite) -> Launch:
    """Environment and files of one execution; what the job's own `env` says wins over defaults, never over identity."""
    role = with_main_program(expanded(assignment, roster, site), assignment, site)
    brought, told = surroundings(assignment, roster, site), spoken(assignment, roster, site)
    address = roster.addresses[assignment.rank]
    own = {
        **_identity(assignment, roster, site),
        **_rendezvous(assignment, roster),
        **_gpus(assignment),
        **{_port_variable(name): str(port) for name, port in roster.listened(assignment.rank).items()},
    }
    network = network_defaults(assignment, address, site)
    env = {**role.env, **brought.env, **told.env, **own}
    if own_variables := brought.own_variables or told.own_variables:
        env[own_variables] = ",".join((*own, *network))
    defaults = {
        "NPROC_PER_NODE": str(assignment.processes),
        **_gpu_hints(assignment),
        **network,
        **told.defaults,
        **brought.defaults,
    }
    public = Dialect.VALOHAI in assignment.dialects
    rosters = config_files(roster, assignment.rank, also=told.host_names, public=public)
    files = {**rosters, **brought.files, **told.files}
    container = assignment.role.runtime is RuntimeKind.DOCKER
    names = {**host_names(roster), **told.host_names} if container else {}
    setup, wrapper = setup_words(assignment, site), (*told.wrapper, *brought.wrapper)
    as_run = _as_run(role, (*setup, *wrapper), (*setup, *brought.instead) if brought.instead else ())
    return Launch(
        env=env,
        defaults=defaults,
        config_files=files,
        programs=told.programs,
        role=None if as_run is assignment.role else as_run,
        secrets=Handover(masked=brought.masked),
        host_names=names,
    )


def _as_run(role: Role, wrapper: tuple[str, ...], instead: tuple[str, ...]) -> Role:
    """The role with words before its command, behind the image's entrypoint and before one of the job; or with others
    in place of all.
    """
    if instead:
        return replace(role, entrypoint=None if role.image is None else (), command=instead)
    if not wrapper:
        return role
    command = (*wrapper, *(role.entrypoint or ()), *role.command)
    return replace(role, entrypoint=None if role.entrypoint is None else (), command=command)


def _identity(assignment: Assignment, roster: Roster, site: LaunchSite) -> Mapping[str, str]:
    return {
        "MUSTER_JOB_ID": assignment.job,
        "MUSTER_JOB_NAME": assignment.job_name,
        "MUSTER_ATTEMPT": str(assignment.attempt),
        "MUSTER_EXECUTION_ID": assignment.execution,
        "MUSTER_ROLE": assignment.role.name,
        "MUSTER_RANK": str(assignment.rank),
        "MUSTER_WORLD_SIZE": str(assignment.world_size),
        "MUSTER_LOCAL_RANK": str(assignment.local_rank),
        "MUSTER_LOCAL_WORLD_SIZE": str(assignment.local_world_size),
        "MUSTER_NODE": roster.nodes[assignment.rank],
        "MUSTER_NODE_RANK": str(assignment.node_rank),
        "MUSTER_NODE_COUNT": str(assignment.node_count),
        "MUSTER_ADDRESS": roster.addresses[assignment.rank],
        **if_short("MUSTER_ADDRESSES", ",".join(roster.addresses)),
        "MUSTER_PROCESSES": str(assignment.processes),
        "MUSTER_GPUS": str(len(assignment.gpus)),
        **({} if (share := assignment.gpu_share) is None else {"MUSTER_GPU_MEMORY": str(share.memory)}),
        "MUSTER_CONFIG_DIR": site.config,
        "MUSTER_HOSTFILE": f"{site.config}/{HOSTFILE}",
        "MUSTER_OUTPUTS_DIR": site.outputs,
        **({CODE_DIRECTORY_VARIABLE: site.code} if site.code else {}),
        **({CODE_COMMIT_VARIABLE: site.commit} if site.commit else {}),
        **({INPUTS_DIRECTORY_VARIABLE: site.inputs} if assignment.role.inputs else {}),
        **_checkpoint(assignment, site),
        **site.volumes,
        **({"MUSTER_STATUS_DIR": site.status} if site.status else {}),
        **({"MUSTER_DOOR": site.door} if site.door else {}),
    }


def _checkpoint(assignment: Assignment, site: LaunchSite) -> Mapping[str, str]:
    """Where it saves, and what it goes on from."""
    if not site.checkpoint:
        return {}
    restored = "" if assignment.restore is None else f"{site.checkpoint}/{assignment.restore.name}"
    return {CHECKPOINT_DIRECTORY_VARIABLE: site.checkpoint, CHECKPOINT_VARIABLE: restored}


def _rendezvous(assignment: Assignment, roster: Roster) -> Mapping[str, str]:
    """What torch's `env://`, torchrun and most launchers read. To them every execution is a node of its own.

    Who is told a local rank takes its process for one of those that a launcher has made. So only an execution that is
    one process is told; it sees no GPUs but its own, so its local rank is 0 whoever else is on the machine.
    """
    rank, size = str(assignment.rank), str(assignment.world_size)
    return {
        "MASTER_ADDR": roster.master_address,
        "MASTER_PORT": str(roster.master_port),
        "RANK": rank,
        "WORLD_SIZE": size,
        "NODE_RANK": rank,
        "GROUP_RANK": rank,
        "NNODES": size,
        **({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"} if assignment.processes == 1 else {}),
    }


def _gpus(assignment: Assignment) -> Mapping[str, str]:
    """A process is told which GPUs are its own; a container sees no others (none at all: `void`)."""
    uuids = ",".join(assignment.gpus)
    if assignment.role.runtime is RuntimeKind.PROCESS:
        return {"CUDA_VISIBLE_DEVICES": uuids, "NVIDIA_VISIBLE_DEVICES": uuids or "void"}
    return {} if uuids else {"NVIDIA_VISIBLE_DEVICES": "void"}


def _gpu_hints(assignment: Assignment) -> Mapping[str, str]:
    """What keeps a program to its part of its GPUs if it asks; nothing else does."""
    share = assignment.gpu_share
    return {} if share is None else {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{share.thousandths / WHOLE_GPU:g}"}


def _port_variable(name: str) -> str:
    return f"MUSTER_PORT_{name.upper().replace('-', '_')}"


def port_requests(assignment: Assignment) -> tuple[PortRequest, ...]:
    """The ports that an execution gets."""
    return with_framework_port(assignment, ports_of(assignment.role, assignment.rank, assignment.network))
