"""Files that only their owner may read."""

import os
from pathlib import Path

from muster.domain.errors import MusterError


def write_private(path: Path, content: bytes) -> None:
    """Put `content` into a file of mode 0600; whoever reads meanwhile finds the old content or the new one."""
    fresh = path.with_name(path.name + ".new")
    try:
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise MusterError(f"cannot write {path}: {error.strerror}") from error


def sync_directory(directory: Path) -> None:
    """Have the names in a directory on the disk: a renamed file survives a power cut only after this."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_secret(path: Path) -> str:
    """The one line of a file that holds a secret; raises MusterError that names the file, never its content."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is no text"
        raise MusterError(f"cannot read the secret in {path}: {cause}") from error
