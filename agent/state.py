"""The agent's state directory, held by one agent at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.domain.errors import ConflictError


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory alone; raises ConflictError while another agent has it. The lock ends with the process."""
    directory.mkdir(parents=True, exist_ok=True)
    # The file is never deleted: a lock on a deleted file would keep nobody out.
    lock = os.open(directory / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another agent runs on {directory}; stop it, or give this one a --state of its own"
            raise ConflictError(message) from None
        yield
    finally:
        os.close(lock)
