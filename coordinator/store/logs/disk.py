"""The disk below the logs: what it refuses, what has reached it, and how much of it is not for logs."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coordinator.store.store import StoreError

_PART_LEFT = 20

_LOOK_EVERY = 1 << 20
"""Bytes of logs between two looks at the disk, as long as it has room."""


class DiskReserve:
    """The part of the disk that logs leave to the database; whoever appends holds a lock."""

    def __init__(self, directory: Path, size: int) -> None:
        """`size`: bytes that logs leave free, a twentieth of the disk where that is less; 0: none."""
        self._directory = directory
        self._size = size
        self._until_look = 0
        """Bytes that may be appended before the disk is looked at again."""

    def require_room(self, size: int) -> None:
        """Raise StoreError where the rest of the disk belongs to the database; the agent tries again."""
        self._until_look -= size
        if not self._size or self._until_look > 0:
            return
        disk = shutil.disk_usage(self._directory if self._directory.exists() else self._directory.parent)
        left = min(self._size, disk.total // _PART_LEFT)
        if disk.free < left + size:
            raise StoreError(
                f"the disk of the coordinator has less than {left >> 10} KiB left, which are for its database: logs "
                "wait on their nodes until there is more. Free some space, or delete jobs"
            )
        self._until_look = min(_LOOK_EVERY, left // 2)


@contextmanager
def disk_faults(what: str) -> Iterator[None]:
    """Raise StoreError, with these words first, for what the system refuses inside."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{what}: {error.strerror}. Free some space, or see what the kernel says of the disk"
        ) from error


def sync_and_close(fd: int) -> None:
    """Return once all of a file or directory is on the disk."""
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
