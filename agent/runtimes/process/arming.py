"""Finds the program of a command on the node, before anything is started."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from muster.domain.jobs.failure import ExecutionError, FailureKind


def find_program(command: Sequence[str], search: str, workdir: Path) -> str:
    """Path of the program of a command, as a shell in the working directory would find it."""
    name = command[0]
    if "/" in name:
        found = shutil.which(str(workdir / name))
    else:
        found = shutil.which(name, path=os.pathsep.join(str(workdir / each) for each in search.split(os.pathsep)))
    if found is None:
        reason = _why_not(workdir / name) if "/" in name else f"looked in {search}"
        raise ExecutionError(FailureKind.COMMAND_NOT_FOUND, f'no program "{name}" on the node: {reason}')
    interpreter = _interpreter(found)
    if interpreter is not None and shutil.which(interpreter) is None:
        reason = f"{found} is a script for {interpreter}, which is not there"
        raise ExecutionError(FailureKind.COMMAND_NOT_FOUND, f'no program "{name}" on the node: {reason}')
    return found


def _why_not(path: Path) -> str:
    return f"{path} is not executable" if path.exists() else f"there is no {path}"


def _interpreter(path: str) -> str | None:
    """The program that a script names in its first line."""
    try:
        # It may be a named pipe by now, with nobody at its other end.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:  # noqa: PTH123 - a pipe must not hold the agent up
            first = (file.read(256) or b"").partition(b"\n")[0]
    except OSError:
        return None  # a program may be executable without being readable
    return os.fsdecode(first[2:].split()[0]) if first.startswith(b"#!") and first[2:].split() else None
