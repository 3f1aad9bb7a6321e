"""The files of one commit that is here, read out of its repository."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from muster.domain.data.tree import (
    LONGEST_CONTENT_PATH,
    ContentEntry,
    ContentKind,
    MalformedTreeError,
    link_leads_out,
    refuse_bad_content_path,
)
from muster.transfer.git import commands
from muster.transfer.git.faults import GitAwayError, GitRefusedError
from muster.transfer.git.program import GitProgram, RunningGit

_FILE, _PROGRAM, _LINK, _OTHER_COMMIT = "100644", "100755", "120000", "160000"
_OLD_FILE = "100664"
_READ = 1024 * 1024
_HEADER_FIELDS = 3


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file, a link or a submodule of a commit, before it is read."""

    path: str
    mode: str
    object: str
    size: int

    @property
    def is_submodule(self) -> bool:
        """Whether a commit of another repository belongs there."""
        return self.mode == _OTHER_COMMIT

    @property
    def is_link(self) -> bool:
        """Whether it leads to another path."""
        return self.mode == _LINK


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The content of a file, as it lies on this machine."""

    digest: str
    size: int
    place: Path


def list_commit(program: GitProgram, commit: str, path: str, seconds: float) -> Sequence[ListedFile]:
    """What stands in a directory of a commit. Raises GitRefusedError where there is none."""
    try:
        return list(_lines(program.output(commands.list_words(commit, path), seconds)))
    except GitAwayError as error:
        if not path:
            raise
        raise GitRefusedError(f"commit {commit} has no directory {path!r}") from error


def read_files(
    program: GitProgram, listed: Sequence[ListedFile], contents: Path, seconds: float
) -> dict[str, ReadFile]:
    """Have the contents of files and links below a directory; by the name that git has for them."""
    objects = list(dict.fromkeys(each.object for each in listed))
    read = dict[str, ReadFile]()
    with program.started(commands.read_words(), seconds, objects) as running:
        for name in objects:
            read[name] = _write(running, name, contents / name)
        running.done()
    return read


def entry_of(listed: ListedFile, path: str, read: ReadFile) -> ContentEntry:
    """A file or link as an entry of a content tree, at a path of it. Raises GitRefusedError."""
    if listed.is_link:
        target = _target(path, read.place, read.size)
        return ContentEntry(path=path, kind=ContentKind.LINK, content=target)
    kind = ContentKind.PROGRAM if listed.mode == _PROGRAM else ContentKind.FILE
    return ContentEntry(path=path, kind=kind, size=read.size, content=read.digest)


def _lines(answer: bytes) -> Iterator[ListedFile]:
    """The lines of `ls-tree`, with paths that files can have. Raises GitRefusedError."""
    for line in answer.split(b"\0"):
        if not line:
            continue
        facts, _, raw = line.partition(b"\t")
        mode, _, name, size = facts.decode("ascii").split()
        try:
            path = raw.decode()
            refuse_bad_content_path(path)
        except UnicodeDecodeError:
            raise GitRefusedError(f"{raw!r} of it is no UTF-8: rename it") from None
        except MalformedTreeError as error:
            raise GitRefusedError(str(error)) from None
        if mode not in {_FILE, _OLD_FILE, _PROGRAM, _LINK, _OTHER_COMMIT}:
            raise GitRefusedError(f"{path!r} of it is neither a file nor a link")
        yield ListedFile(path, mode, name, int(size) if size.isdecimal() else 0)


def _write(running: RunningGit, name: str, place: Path) -> ReadFile:
    """Have the next object that git gives in a file."""
    header = running.line().split()
    if len(header) != _HEADER_FIELDS or header[0].decode() != name or header[1] != b"blob":
        running.done()
        raise GitAwayError("git gave less than it had listed")
    size = left = int(header[2])
    content = sha256()
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while left:
            data = running.read(min(left, _READ))
            if not data:
                running.done()
                raise GitAwayError("git ended before it had given all files")
            file.write(data)
            content.update(data)
            left -= len(data)
    running.read(1)  # the end of the line
    return ReadFile(content.hexdigest(), size, place)


def _target(path: str, place: Path, size: int) -> str:
    """Where a link leads. Raises GitRefusedError where that is out of the code."""
    if size > LONGEST_CONTENT_PATH:
        raise GitRefusedError(f"{path!r} leads to what is no path")
    try:
        target = place.read_bytes().decode()
    except UnicodeDecodeError:
        raise GitRefusedError(f"{path!r} leads to what is no UTF-8") from None
    if link_leads_out(path, target):
        raise GitRefusedError(
            f"{path!r} leads to {target!r}, which is not in the code: put what it leads to into the repository"
        )
    return target
