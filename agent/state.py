"""The agent's state directory, held by one agent at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.domain.errors import ConflictError, MusterError


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory alone; raises ConflictError while another agent has it, and
    MusterError if it cannot be used. The lock ends with the process.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The file is never deleted: a lock on a deleted file would keep nobody out.
        lock = os.open(directory / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MusterError(
            f"the state directory {directory} cannot be used: {error.strerror}. "
            "Check its owner and free space, or name another one",
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another agent runs on {directory}; stop it, or give this one a --state of its own"
            raise ConflictError(message) from None
        yield
    finally:
        os.close(lock)
