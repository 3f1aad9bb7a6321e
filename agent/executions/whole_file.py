"""Writes files that are read whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

_FRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_OVER = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
"""Truncated only afterwards, if need be: some file systems write at once what was emptied and written again."""


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Write a file so that no reader ever sees a part of it.

    By the system's own calls: each execution writes several, and file objects cost more than the files.
    """
    temporary = f"{path.parent}/.{path.name}.part"
    try:
        descriptor = os.open(temporary, _FRESH, 0o600)
        try:
            os.fchmod(descriptor, mode)
            _write_all(descriptor, content)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)  # noqa: PTH104 - path objects cost more than the calls
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108 - as above
        raise


def write_unseen(path: Path, content: bytes, mode: int) -> None:
    """Write a file that nobody reads unless all of it was written, into one that is there if there is one."""
    descriptor = os.open(path, _OVER, mode)
    try:
        found = os.fstat(descriptor)
        if found.st_mode & 0o7777 != mode:
            os.fchmod(descriptor, mode)
        _write_all(descriptor, content)
        if found.st_size > len(content):
            os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    """A disk that becomes full takes a part, and says so when it is asked again."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
