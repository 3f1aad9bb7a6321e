"""How much of a job its nodes have to be told and to keep, as far as the job itself says."""

from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.placing.mig import SLICES
from muster.domain.jobs.placing.portion import LEAST_PORTION, WHOLE_GPU

MAX_SHARED_BYTES = 32 * 1024 * 1024
"""Bytes of files, variables and commands of all executions of a job that can share a node."""
LARGEST_NODE_GPUS = 16
LARGEST_NODE_CPUS = 1024
"""What the largest node is taken to have: so many executions can share one, whatever the fleet has today."""


def size_of(role: Role) -> int:
    """Bytes of what each execution of a role is given: files, variables and command."""
    texts = (
        *(role.entrypoint or ()),
        *role.command,
        *role.env,
        *role.env.values(),
        *(file.path for file in role.files),
    )
    return sum(len(text.encode(errors="replace")) for text in texts) + sum(len(file.content) for file in role.files)


def sharing(role: Role) -> int:
    """How many executions of a role can share a node, by what they ask for."""
    most = role.count
    if role.resources.gpus:
        there = LARGEST_NODE_GPUS if role.resources.mig is None else LARGEST_NODE_GPUS * SLICES
        if (portion := role.resources.portion) is not None:
            there *= WHOLE_GPU // (LEAST_PORTION if portion.memory else portion.thousandths)
        most = min(most, max(1, there // role.resources.gpus))
    if role.resources.cpu_millis:
        most = min(most, max(1, LARGEST_NODE_CPUS * 1000 // role.resources.cpu_millis))
    return most


def too_much_to_share(spec: JobSpec) -> str | None:
    """Why the executions of a job that can share a node are given too much; None: they are not."""
    sizes = [(size_of(role), role) for role in spec.roles]
    if sum(size * role.count for size, role in sizes) <= MAX_SHARED_BYTES:
        return None
    left, total = spec.max_per_node or spec.size, 0
    for size, role in sorted(sizes, key=lambda each: each[0], reverse=True):
        count = min(left, sharing(role))
        left -= count
        total += size * count
    if total <= MAX_SHARED_BYTES:
        return None
    size, role = max(sizes, key=lambda each: each[0] * min(sharing(each[1]), spec.max_per_node or spec.size))
    count = min(sharing(role), spec.max_per_node or spec.size)
    return (
        f"role {role.name} has {_mib(size)} of files, variables and command, and {count} of its executions can share "
        f"a node, where all of the job may have {_mib(MAX_SHARED_BYTES)}; put large files into the image or on a "
        "mount, or let fewer share a node (max_per_node)"
    )


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
