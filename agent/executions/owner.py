"""Owners of an execution's directories: user code writes to them, and need not run as the agent's user."""

import os
import posixpath
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent.core.launching.job_user import JobUser
from agent.executions.layout import ExecutionDirectory
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import InlineFile, Role

_ALONE, _OWN, _ANYBODYS = 0o700, 0o770, 0o1777
_PASS_THROUGH, _READ_AND_WRITE = 0o001, 0o006


def give(directory: Path, user: JobUser | None) -> None:
    """Have a user's code write to a directory: nobody else beside the agent, if the agent may do that, else anybody."""
    if user is not None:
        try:
            directory.chmod(_OWN)
            os.chown(directory, user.uid, -1)
        except PermissionError:
            pass  # what is above it keeps strangers out
        else:
            return
    directory.chmod(_ANYBODYS)


def renew(directory: Path) -> None:
    """Have an empty directory in place of one, closed to all but the agent: nobody's link is in it."""
    shutil.rmtree(directory)
    directory.mkdir()
    directory.chmod(_ALONE)


def give_all(directory: Path, user: JobUser) -> None:
    """Have a directory and all in it belong to a user; raises OSError where the agent may not do that.

    From the inside out: whoever has a directory can put a link into it, and what lies behind that is not to be touched.
    """
    for path in (*reversed([*directory.rglob("*")]), directory):
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def free_user(directory: ExecutionDirectory, job_user: JobUser, numbers: Sequence[int]) -> JobUser:
    """The first user by one of these numbers to whom no other execution's directory belongs.

    Without numbers all executions have the same user.
    Outputs tell whose a directory is, also to an agent that was started later. Raises ExecutionError.
    """
    if not numbers:
        return job_user
    taken = set()
    for other in directory.path.parent.iterdir():
        with suppress(FileNotFoundError):
            taken.add(ExecutionDirectory(directory.path.parent, ExecutionId(other.name)).outputs.stat().st_uid)
    free = next((number for number in numbers if number not in taken), None)
    if free is None:
        message = f"all {len(numbers)} users for processes are taken; give the agent more of them (--process-users)"
        raise ExecutionError(FailureKind.RUNTIME, message)
    return JobUser(uid=free, gid=job_user.gid)


def own_user(directory: ExecutionDirectory, numbers: Sequence[int]) -> int | None:
    """The user by one of these numbers to whom an execution's directory, and no other, belongs; None: there is none."""
    with suppress(FileNotFoundError):
        owner = directory.outputs.stat().st_uid
        return owner if owner in numbers and owner != os.geteuid() else None
    return None


def open_to(directory: ExecutionDirectory, user: JobUser) -> None:
    """Let a user of the node get to what is its own in an execution's directory; everything beside it stays closed.

    The working directory is only given when all is in it that the agent writes: the user may run other code already.
    """
    let_through(directory)
    directory.config.chmod(0o755)
    for path in (directory.outputs, directory.status):
        give(path, user)
    if directory.checkpoint.exists():
        give_all(directory.checkpoint, user)
        directory.checkpoint.chmod(_OWN)


def let_through(directory: ExecutionDirectory) -> None:
    """Let everybody who knows its name pass to an execution's directory; what lies above it stays as unreadable."""
    for path in (directory.path.parent.parent, directory.path.parent, directory.path):
        mode = path.stat().st_mode & 0o7777
        wanted = mode & ~_READ_AND_WRITE | _PASS_THROUGH
        if mode != wanted:
            path.chmod(wanted)


def process_workdir(role: Role, directory: ExecutionDirectory) -> Path:
    """The working directory of a process: what its role names, else the code that its job brings, else an empty one."""
    if role.code is not None and role.workdir is None:
        return directory.code
    return directory.work / (role.workdir or "")


def refuse_elsewhere(files: Sequence[InlineFile], workdir: Path, directory: ExecutionDirectory) -> None:
    """Raise ExecutionError for files that the agent would write where their user may not."""
    for file in files:
        path = Path(posixpath.normpath(workdir / file.path))
        if not (path.is_relative_to(directory.work) or path.is_relative_to(directory.code)):
            message = f"files: {file.path} does not lie in the working directory that is made for the process"
            raise ExecutionError(FailureKind.INVALID_OPTION, message)
