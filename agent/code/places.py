"""Which files belong to the code of an execution, and whose that is."""

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from agent.core.launching.job_user import JobUser
from agent.executions.owner import give_all
from muster.domain.data.code import JobCode
from muster.domain.jobs.job import InlineFile

_FOR_ALL = 0o006
_PASS = 0o001


def files_in(files: Mapping[str, InlineFile], directory: str) -> dict[str, InlineFile]:
    """Files below a directory, by their paths there, of files by their absolute paths."""
    return {
        posixpath.relpath(path, directory): file for path, file in files.items() if path.startswith(f"{directory}/")
    }


def code_place(code: JobCode, directory: Path) -> Path:
    """Where the code of an execution lies: a copy in its directory, or what a link there leads to. Raises OSError."""
    return directory if code.writable else directory.readlink()


def give_code(directory: Path, user: JobUser | None) -> None:
    """Have a container's user read, change and run what is in it; raises OSError.

    It becomes that user's where the agent may do that; else anybody may, as what is above it keeps strangers out.
    """
    if user is not None:
        with suppress(PermissionError):
            give_all(directory, user)
            return
    for path in _all_in(directory):
        mode = path.stat().st_mode & 0o777
        path.chmod(mode | _FOR_ALL | (_PASS if mode & _PASS else 0))


def _all_in(directory: Path) -> Iterator[Path]:
    yield directory
    yield from (path for path in directory.rglob("*") if not path.is_symlink())
