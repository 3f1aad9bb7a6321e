"""Room on the disk that a file takes until it is needed; both reserves of the coordinator hold theirs so."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

_PLENTY = 4
"""Room is taken where so many times its size is free."""


def hold_room(file: Path, size: int) -> bool:
    """Have a file of that size in bytes, whole or not at all; False: the disk has no room to spare.

    Raises OSError where the disk gives it no room all the same.
    """
    if shutil.disk_usage(file.parent).free < _PLENTY * size:
        return False
    fresh = file.with_name(f"{file.name}.new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, size)
        finally:
            os.close(handle)
        fresh.replace(file)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
    return True
