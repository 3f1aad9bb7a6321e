"""The program in front of user code in a container, and what it notes, in the directory of the execution.

`first_program/first.c` is its source.
"""

import os
from functools import cache
from importlib.resources import files

from agent.core.containers.first import EXIT_NOTE, FIRST_PROGRAM, NO_NOTE, noted_exit_code
from agent.executions.files import EXECUTABLE
from agent.executions.layout import ExecutionDirectory
from agent.executions.whole_file import write_unseen

_WRITABLE = 0o666
"""The user of a container may be any; whoever writes another note lies about itself alone."""


def bring_first(directory: ExecutionDirectory, architecture: str) -> bool:
    """Put the program into the directory of an execution, with no note yet. False where it cannot run: there is none
    for that processor, or the file system runs no programs. Raises OSError.
    """
    program = _program(architecture)
    if program is None:
        return False
    directory.first.mkdir(exist_ok=True)
    if os.statvfs(directory.first).f_flag & os.ST_NOEXEC:
        return False
    directory.first.chmod(EXECUTABLE)
    write_unseen(directory.first / FIRST_PROGRAM, program, EXECUTABLE)
    write_unseen(directory.first / EXIT_NOTE, NO_NOTE, _WRITABLE)
    return True


def read_exit_code(directory: ExecutionDirectory) -> int | None:
    """The exit code of user code that has ended, as it was noted; None: it was not."""
    try:
        descriptor = os.open(directory.first / EXIT_NOTE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return noted_exit_code(os.read(descriptor, len(NO_NOTE)))
    except OSError:
        return None
    finally:
        os.close(descriptor)


@cache
def _program(architecture: str) -> bytes | None:
    """The program for a processor, named as the kernel names it."""
    file = files("agent.runtimes.docker") / "first_program" / f"first-{architecture}"
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
