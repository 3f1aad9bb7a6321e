"""What user code has left in its outputs directory, read so that nobody can slip in what is not its own.

Every file is opened below the directory by descriptors, and no link is followed: what user code left running may still
change what lies there.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import NamedTuple

from muster.domain.data.output_terms import ALL_OUTPUTS, OutputTerms
from muster.domain.data.outputs import MOST_OUTPUTS
from muster.domain.data.pattern import NamePattern, name_pattern
from muster.domain.data.tree import (
    ContentEntry,
    ContentKind,
    ContentTree,
    MalformedTreeError,
    content_tree,
    refuse_bad_content_path,
)
from muster.domain.errors import MusterError
from muster.domain.quantity import format_memory, size_text

DEEPEST_OUTPUT = 200
"""Directories above an output."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = 1024 * 1024
_TRIES = 3
"""How often a file is read that changes meanwhile; after that its last state counts."""


class TooManyOutputsError(MusterError):
    """An execution has left more than is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftFiles:
    """What was found."""

    tree: ContentTree
    files: Mapping[str, "LeftFile"]
    """Where to read what the tree lists, by its SHA-256."""
    left_out: tuple[tuple[str, str], ...] = ()
    """What is no file of the job: path and reason."""
    states: Mapping[str, "FileState"] = field(default_factory=dict)
    """How each file was when it was read, by its path."""


class FileState(NamedTuple):
    """What changes of a file when somebody writes to it."""

    size: int
    changed_ns: int
    status_changed_ns: int
    inode: int
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBefore:
    """A file that was read before, and need not be read again as long as it is as it was."""

    entry: ContentEntry
    state: FileState


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFiles:
    """Which files are read."""

    entry: str = ""
    """The name of what alone is read of what lies at the top; empty: all of it."""
    without: int = 0
    """Permissions that they do not have."""
    known: Mapping[str, ReadBefore] = field(default_factory=dict)
    """What was read before, by its path."""


ALL_READ = ReadFiles()
"""All files, each of them anew."""


@dataclass(frozen=True, slots=True)
class LeftFile:
    """One file below an outputs directory."""

    directory: Path
    path: str
    owner: int | None

    def read(self, offset: int, length: int) -> bytes:
        """A part of it; raises OSError, also where something else lies at its place now."""
        with _opened(self.directory, self.path) as (descriptor, device):
            if (reason := _unfit(os.fstat(descriptor), device, self.owner)) is not None:
                raise OSError(0, f"is {reason}", self.path)
            return os.pread(descriptor, length, offset)

    def __str__(self) -> str:
        return self.path


@dataclass(slots=True)
class _Found:
    """What a walk has come upon."""

    entries: list[ContentEntry] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    waiting: list[str] = field(default_factory=lambda: [""])
    only: tuple[NamePattern, ...] = ()
    """Names of files that are wanted; empty: all."""
    entry: str = ""
    """The name of what alone is looked at of what lies at the top; empty: all of it."""
    mode: int = 0
    """Permissions that a file must not have; 0: it may have any."""

    def wants(self, path: str, mode: int) -> bool:
        """Whether a file is looked at."""
        return not mode & self.mode and (not self.only or any(pattern.matches(path) for pattern in self.only))


def read_left_files(
    directory: Path, owner: int | None, allowed: int, terms: OutputTerms = ALL_OUTPUTS, which: ReadFiles = ALL_READ
) -> LeftFiles:
    """All wanted files below a directory that belong to a user; None as `owner`: to anybody, as in a container.

    `which` says which of them are read. What holds more than
    `allowed` bytes, which its project may keep, or than its terms allow, is not read. Raises TooManyOutputsError, or
    OSError where the directory itself cannot be read.
    """
    found, size = _Found(only=tuple(map(name_pattern, terms.only)), entry=which.entry, mode=which.without), 0
    states = dict[str, FileState]()
    while found.waiting:
        inside = found.waiting.pop()
        try:
            for path, descriptor, length in _files_in(directory, inside, owner, found):
                size += length
                _refuse_too_much(size, allowed, terms.limit)
                if len(found.entries) >= MOST_OUTPUTS:
                    raise TooManyOutputsError(f"they are more than {MOST_OUTPUTS} files")
                states[path], read = _read(path, descriptor, which.known.get(path))
                found.entries.append(read)
        except OSError as error:
            if not inside:
                raise
            found.left_out.append((inside, _words(error)))
    tree = content_tree(found.entries)
    files = {each.content: LeftFile(directory, each.path, owner) for each in tree.entries}
    return LeftFiles(tree=tree, files=files, left_out=tuple(found.left_out), states=states)


def _refuse_too_much(size: int, allowed: int, limit: int | None) -> None:
    if limit is not None and size > limit:
        raise TooManyOutputsError(f"they are more than the {format_memory(limit)} of outputs.limit")
    if size > allowed:
        raise TooManyOutputsError(f"they are more than the {size_text(allowed)} that its project may keep")


def _files_in(directory: Path, inside: str, owner: int | None, found: _Found) -> Iterator[tuple[str, int, int]]:
    """The files in one directory that count, each open while it is the turn of it; other directories wait."""
    with _opened(directory, inside) as (parent, device):
        if os.fstat(parent).st_dev != device:
            found.left_out.append((inside, "on another file system"))
            return
        with os.scandir(parent) as listed:
            names = sorted(each.name for each in listed if inside or found.entry in ("", each.name))
        for name in names:
            path = f"{inside}/{name}" if inside else name
            try:
                refuse_bad_content_path(path)
                status = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if S_ISDIR(status.st_mode) and path.count("/") < DEEPEST_OUTPUT:
                    found.waiting.append(path)
                    continue
                if not found.wants(path, status.st_mode):
                    continue
                if (reason := _unfit(status, device, owner)) is None:
                    descriptor = os.open(name, _FILE, dir_fd=parent)
                    try:
                        status = os.fstat(descriptor)
                        if (reason := _unfit(status, device, owner)) is None:
                            yield path, descriptor, status.st_size
                    finally:
                        os.close(descriptor)
            except MalformedTreeError as error:
                path, reason = ascii(path), str(error)
            except OSError as error:
                reason = _words(error)
            if reason is not None:
                found.left_out.append((path, reason))


def _unfit(status: os.stat_result, device: int, owner: int | None) -> str | None:
    """Why something is no output; None: it is one."""
    if S_ISLNK(status.st_mode):
        return "a link"
    if S_ISDIR(status.st_mode):
        return f"deeper than {DEEPEST_OUTPUT} directories"
    if not S_ISREG(status.st_mode):
        return "no file"
    if status.st_dev != device:
        return "on another file system"
    return None if owner is None or status.st_uid == owner else "of another user"


def _read(path: str, descriptor: int, known: ReadBefore | None) -> tuple[FileState, ContentEntry]:
    """A file as it holds still, and how it was before it was read; raises OSError."""
    for _ in range(_TRIES):
        before = os.fstat(descriptor)
        if known is not None and known.state == _state(before):
            return known.state, known.entry
        digest, size = _hashed(descriptor)
        after = os.fstat(descriptor)
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, size):
            break
    kind = ContentKind.PROGRAM if after.st_mode & 0o100 else ContentKind.FILE
    return _state(before), ContentEntry(path=path, kind=kind, size=size, content=digest)


def _state(status: os.stat_result) -> FileState:
    return FileState(
        size=status.st_size,
        changed_ns=status.st_mtime_ns,
        status_changed_ns=status.st_ctime_ns,
        inode=status.st_ino,
        mode=status.st_mode,
    )


def _hashed(descriptor: int) -> tuple[str, int]:
    digest, offset = sha256(), 0
    while data := os.pread(descriptor, _READ, offset):
        digest.update(data)
        offset += len(data)
    return digest.hexdigest(), offset


@contextmanager
def _opened(directory: Path, path: str) -> Iterator[tuple[int, int]]:
    """Something below a directory, through no link, and the file system that the directory is on. Raises OSError."""
    names = path.split("/") if path else []
    descriptor = os.open(directory, _DIRECTORY)
    try:
        device = os.fstat(descriptor).st_dev
        for place, name in enumerate(names, start=1):
            kind = _FILE if place == len(names) else _DIRECTORY
            below = os.open(name, kind, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor, device
    finally:
        os.close(descriptor)


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
