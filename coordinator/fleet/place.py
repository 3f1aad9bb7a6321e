"""Where a state directory lies, so that a copy that is started beside the original is told from one that was moved."""

import os
from dataclasses import dataclass
from pathlib import Path

_IDENTITY = Path("/etc/machine-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePlace:
    """A directory on a file system on a computer."""

    machine: str
    """What the system calls itself; empty where it has no name, as in most containers."""
    path: str
    filesystem: int
    inode: int


def place_of_directory(directory: Path) -> StatePlace:
    """Where a directory is now."""
    try:
        machine = _IDENTITY.read_text().strip()
    except (OSError, UnicodeDecodeError):
        machine = ""
    return StatePlace(
        machine=machine,
        path=str(directory.resolve()),
        filesystem=os.statvfs(directory).f_fsid,
        inode=directory.stat().st_ino,
    )


def same_directory(before: StatePlace, now: StatePlace) -> bool:
    """Whether this is the directory of before: it may have been renamed, and its disk put into another computer."""
    if before.inode != now.inode:
        return False
    return before.filesystem == now.filesystem or (before.machine, before.path) == (now.machine, now.path)


def copied(before: StatePlace, now: StatePlace, *, original_there: bool) -> str:
    """Why this directory may be a copy whose original is in use; empty: it was moved.

    `original_there`: whether a directory of the same fleet lies at the path of before.
    """
    if same_directory(before, now):
        return ""
    if before.machine and now.machine and before.machine != now.machine:
        return f"it was last used on another computer, as {before.path}"
    if original_there and before.path != now.path:
        return f"it is a copy of {before.path}, which is still there"
    return ""
