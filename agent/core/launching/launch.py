"""What user code finds when it starts: its environment and the roster files."""

from collections.abc import Mapping

from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.gangs.roster import Roster, config_files, host_names
from muster.domain.jobs.job import Network, PortRequest, RuntimeKind
from muster.domain.jobs.ports import ports_of

CONTAINER_CONFIG = "/muster/config"
"""Where a container sees the roster files."""
CONTAINER_OUTPUTS = "/muster/outputs"
"""Where a container leaves what is to be kept."""
CONTAINER_HOME = "/muster/home"
"""The home directory of users that the image need not know."""
CONTAINER_INTERFACE = "eth0"
"""The only interface of a container on a bridge network."""


def launch(assignment: Assignment, roster: Roster, directories: tuple[str, str], interface: str | None) -> Launch:
    """Environment and files of one execution; what the job's own `env` says wins over defaults, never over identity.

    `directories` are those of configuration and outputs as user code sees them; `interface` is the network interface
    that has the node's address, where known.
    """
    env = {
        **_interfaces(assignment, interface),
        **assignment.role.env,
        **_identity(assignment, roster, directories),
        **_frameworks(assignment, roster),
        **_gpus(assignment),
        **{_port_variable(name): str(port) for name, port in roster.listened(assignment.rank).items()},
    }
    files = config_files(roster, assignment.rank)
    container = assignment.role.runtime is RuntimeKind.DOCKER
    return Launch(env=env, config_files=files, host_names=host_names(roster) if container else {})


def _identity(assignment: Assignment, roster: Roster, directories: tuple[str, str]) -> Mapping[str, str]:
    config, outputs = directories
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
        "MUSTER_CONFIG_DIR": config,
        "MUSTER_OUTPUTS_DIR": outputs,
    }


def _frameworks(assignment: Assignment, roster: Roster) -> Mapping[str, str]:
    """What torch's `env://`, torchrun and most launchers read. To them every execution is a node of its own.

    An execution sees no GPUs but its own, so its local rank is 0 whoever else is on the machine.
    """
    rank, size = str(assignment.rank), str(assignment.world_size)
    return {
        "MASTER_ADDR": roster.master_address,
        "MASTER_PORT": str(roster.master_port),
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": rank,
        "GROUP_RANK": rank,
        "NNODES": size,
    }


def _gpus(assignment: Assignment) -> Mapping[str, str]:
    """A process is told which GPUs are its own; a container sees no others (none at all: `void`)."""
    uuids = ",".join(assignment.gpus)
    if assignment.role.runtime is RuntimeKind.PROCESS:
        return {"CUDA_VISIBLE_DEVICES": uuids, "NVIDIA_VISIBLE_DEVICES": uuids or "void"}
    return {} if uuids else {"NVIDIA_VISIBLE_DEVICES": "void"}


def _interfaces(assignment: Assignment, interface: str | None) -> Mapping[str, str]:
    """Gloo and NCCL otherwise guess from the host name, and often guess loopback."""
    name = CONTAINER_INTERFACE if assignment.network is Network.BRIDGE else interface
    return {} if name is None else {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name}


def _port_variable(name: str) -> str:
    return f"MUSTER_PORT_{name.upper().replace('-', '_')}"


def port_requests(assignment: Assignment) -> tuple[PortRequest, ...]:
    """The ports that an execution gets."""
    return ports_of(assignment.role, assignment.rank, assignment.network)
