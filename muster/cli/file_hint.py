"""What is said after a program that probably did not find a file: how files that lie here get to the nodes."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from muster.domain.jobs.job import JobSpec, Role

MISSING_FILE_CODES = frozenset({2, 126, 127})
"""Exit codes with which interpreters and shells end that cannot open what they were given."""


def forgotten_files(spec: JobSpec, directories: Iterable[Path]) -> Sequence[str]:
    """Files that a command names, that lie in one of the directories here, and that no execution got."""
    found = dict.fromkeys(word for role in spec.roles for word in _absent(role))
    return [word for word in found if any((directory / word).is_file() for directory in directories)]


def _absent(role: Role) -> Iterator[str]:
    """Relative paths in the command of a role that its `files` do not bring."""
    sent = {PurePosixPath(file.path) for file in role.files}
    for word in (part for argument in role.command for part in _words(argument)):
        if word and not word.startswith(("/", "-")) and PurePosixPath(word) not in sent:
            yield word


def _words(argument: str) -> Sequence[str]:
    """Words of a line for a shell, or the argument itself."""
    try:
        return shlex.split(argument)
    except ValueError:
        return (argument,)
