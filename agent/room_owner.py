"""Whose the directories of an execution are: user code writes to them, and need not run as the agent's user."""

import os
import posixpath
import shutil
from collections.abc import Sequence
from pathlib import Path

from agent.core.job_user import JobUser
from agent.runtimes.runtime import Room
from muster.domain.failure import ExecutionError, FailureKind
from muster.domain.job import InlineFile

_OWN, _ANYBODYS = 0o770, 0o1777
_PASS_THROUGH = 0o001


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
    directory.chmod(_OWN)


def give_all(directory: Path, user: JobUser) -> None:
    """Have a directory and all in it belong to a user; raises OSError where the agent may not do that.

    From the inside out: whoever has a directory can put a link into it, and what lies behind that is not to be touched.
    """
    for path in (*reversed([*directory.rglob("*")]), directory):
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def open_to(room: Room, user: JobUser) -> None:
    """Let a user of the node get to what is its own in a room; everything beside it stays closed.

    The working directory is only given when all is in it that the agent writes: the user may run other code already.
    """
    let_through(room)
    room.config.chmod(0o755)
    give(room.outputs, user)


def let_through(room: Room) -> None:
    """Let everybody pass to a room who knows its name; what lies above it can be read as little as before."""
    for directory in (room.path.parent.parent, room.path.parent, room.path):
        mode = directory.stat().st_mode & 0o7777
        if not mode & _PASS_THROUGH:
            directory.chmod(mode | _PASS_THROUGH)


def refuse_elsewhere(files: Sequence[InlineFile], workdir: Path, work: Path) -> None:
    """Raise ExecutionError for files that the agent would write where their user may not."""
    for file in files:
        path = Path(posixpath.normpath(workdir / file.path))
        if not path.is_relative_to(work):
            message = f"files: {file.path} does not lie in the working directory that is made for the process"
            raise ExecutionError(FailureKind.INVALID_OPTION, message)
