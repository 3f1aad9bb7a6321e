"""Writes files that are there whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

_FRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


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
        os.rename(temporary, path)  # noqa: PTH104
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def _write_all(descriptor: int, content: bytes) -> None:
    """A disk that becomes full takes a part, and says so when it is asked again."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
