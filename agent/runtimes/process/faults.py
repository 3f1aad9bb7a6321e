"""What goes wrong with processes, in words for users."""

import errno
from collections.abc import Sequence
from dataclasses import replace

from agent.executions.layout import ExecutionDirectory
from muster.domain.data.volume import Volume
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Network, Security
from muster.domain.jobs.secret_use import SECRETS_DIRECTORY


def write_failure(directory: ExecutionDirectory, problem: OSError) -> ExecutionError:
    """Why the files of an execution cannot be written."""
    if problem.errno in {errno.ENOSPC, errno.EDQUOT}:
        message = f"no space is left on the node for the files of the execution ({directory.path})"
        return ExecutionError(FailureKind.DISK_FULL, message)
    return ExecutionError(FailureKind.INVALID_OPTION, f"cannot write {problem.filename}: {problem.strerror}")


def start_failure(name: str, problem: OSError) -> ExecutionError:
    """Why the program of that name cannot be started."""
    kinds = {
        errno.ENOENT: FailureKind.COMMAND_NOT_FOUND,
        errno.EACCES: FailureKind.COMMAND_NOT_FOUND,
        errno.ENOEXEC: FailureKind.COMMAND_NOT_FOUND,
        errno.E2BIG: FailureKind.INVALID_OPTION,
        errno.EINVAL: FailureKind.INVALID_OPTION,
        errno.ENOSPC: FailureKind.DISK_FULL,
        errno.EDQUOT: FailureKind.DISK_FULL,
    }
    kind = kinds.get(problem.errno or 0, FailureKind.RUNTIME)
    return ExecutionError(kind, f'cannot start "{name}": {problem.strerror or problem}')


def refuse_survivors(pids: Sequence[int]) -> None:
    """Raise ExecutionError where there are any."""
    if pids:
        message = f"processes {pids} hang in the kernel and survive SIGKILL; look at the node's kernel log"
        raise ExecutionError(FailureKind.RUNTIME, message)


def refuse_kept(volumes: Sequence[Volume], own_user: int | None) -> None:
    """Raise ExecutionError for volumes that stay on the node, where each process has a user of its own."""
    kept = [volume.name for volume in volumes if volume.is_kept]
    if kept and own_user is not None:
        message = (
            f"volumes.{kept[0]}: this node gives each plain process a user of its own (--process-users), so that none "
            "could read what another one keeps; give the role an image, or keep it elsewhere"
        )
        raise ExecutionError(FailureKind.INVALID_OPTION, message)


def refuse_container_options(assignment: Assignment) -> None:
    """Raise ExecutionError where a role without image asks for what only containers have."""
    role = assignment.role
    options = {
        "user": role.user,
        "mounts": role.mounts,
        "ulimits": role.ulimits,
        "security": replace(role.security, pids=None) != Security(),
        f"a directory of secrets that is not right below {SECRETS_DIRECTORY}": [
            use for use in role.secrets if use.directory and not use.directory.startswith(f"{SECRETS_DIRECTORY}/")
        ],
        "volumes in memory": [volume for volume in role.volumes if volume.tmpfs is not None],
        "volumes that may only be read": [volume for volume in role.volumes if not volume.writable],
        "network: bridge": assignment.network is Network.BRIDGE,
    }
    given = [name for name, value in options.items() if value]
    if given:
        message = f"{', '.join(given)} is only for containers; give the role an image or leave it out"
        raise ExecutionError(FailureKind.INVALID_OPTION, message)
    if not role.entrypoint and not role.command and assignment.interactive is None:
        raise ExecutionError(FailureKind.INVALID_OPTION, "there is no command; a role without image needs one")
