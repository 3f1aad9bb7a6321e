"""The files of `ssh` that belong to the user: read and replaced with their rights, behind links."""

import os
import stat
from pathlib import Path

from muster.domain.errors import MusterError
from muster.trust.files import sync_directory

_NEW_FILE_MODE = 0o600
_NEW_DIRECTORY_MODE = 0o700


def read_user_config(file: Path) -> bytes:
    """What is in a file; nothing where there is none. Raises MusterError."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise MusterError(f"cannot read {file}: {error.strerror}") from error


def replace_user_config(file: Path, content: bytes) -> None:
    """Put other content into a file, with the rights that it has; what a link leads to is replaced, not the link.

    Whoever reads meanwhile finds the old content or the new one. Raises MusterError.
    """
    try:
        target = file.resolve()
        target.parent.mkdir(mode=_NEW_DIRECTORY_MODE, parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else _NEW_FILE_MODE
        fresh = target.with_name(f"{target.name}.muster-new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as opened:
            os.fchmod(descriptor, mode)  # whatever the mask of the process takes away
            opened.write(content)
            opened.flush()
            os.fsync(descriptor)
        fresh.replace(target)
        sync_directory(target.parent)
    except OSError as error:
        raise MusterError(f"cannot write {file}: {error.strerror}") from error
