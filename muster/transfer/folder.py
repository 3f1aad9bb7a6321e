"""A folder on this machine as a content tree: what is in it, without what its ignore rules leave out, hashed."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG

from muster.domain.data.tree import (
    LARGEST_CONTENT_TREE,
    ContentEntry,
    ContentKind,
    ContentTree,
    MalformedTreeError,
    content_tree,
    link_leads_out,
    refuse_bad_content_path,
)
from muster.domain.data.upload import CODE_LIMIT
from muster.domain.errors import MusterError
from muster.domain.quantity import size_text
from muster.transfer.ignore_rules import IgnoreRules, rules_in
from muster.transfer.remembered import FileStamp, Remembered

CODE_FILES = 50_000
"""Files of a folder that is uploaded as code."""

LARGEST_SHOWN = 10
"""Entries of a folder over its limit that are shown."""

DEEPEST_FOLDER = 200
"""Directories above a file."""

_READ = 1024 * 1024
_TRIES = 3
"""Attempts to read a file that changes meanwhile."""

_INSIDE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderError(MusterError):
    """A folder cannot be taken as it is; names what is in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderLimits:
    """How much a folder may hold."""

    size: int = CODE_LIMIT
    files: int = CODE_FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that was read."""

    path: Path
    tree: ContentTree
    remembered: Remembered = field(repr=False)
    """What need not be read again next time."""
    hashed: int
    """Files that were read."""

    def file_of(self, digest: str) -> Path:
        """A file that held this when it was read. Raises KeyError."""
        for each in self.tree.entries:
            if each.content == digest and not each.is_link:
                return self.path / each.path
        raise KeyError(digest)


@dataclass(frozen=True, slots=True)
class _Found:
    """A file or link before it is read."""

    path: str
    status: os.stat_result
    target: str = ""
    """Where a link leads."""


def read_folder(
    path: Path,
    *,
    now_ns: int,
    remembered: Remembered | None = None,
    limits: FolderLimits | None = None,
    seen: Callable[[int], None] | None = None,
) -> Folder:
    """What is in a folder. Raises FolderError, IgnoreRuleError or OSError.

    `now_ns` is the time as the file system has it, `remembered` what the last reading said, and `seen` is told how many
    bytes of a file were read.
    """
    known = remembered or {}
    found = list(_walk(path))
    _refuse_too_large(path, found, limits or FolderLimits())
    entries: list[ContentEntry] = []
    kept: dict[str, tuple[FileStamp, str]] = {}
    hashed = 0
    for each in found:
        if S_ISLNK(each.status.st_mode):
            entries.append(ContentEntry(path=each.path, kind=ContentKind.LINK, content=each.target))
            continue
        stamp, digest = known.get(each.path, (None, ""))
        if stamp is None or stamp != FileStamp.of(each.status):
            stamp, digest = _hashed(path, each.path, seen)
            hashed += 1
        if stamp.is_settled(now_ns):
            kept[each.path] = (stamp, digest)
        kind = ContentKind.PROGRAM if each.status.st_mode & 0o100 else ContentKind.FILE
        entries.append(ContentEntry(path=each.path, kind=kind, size=stamp.size, content=digest))
    try:
        tree = content_tree(entries)
    except MalformedTreeError as error:
        raise FolderError(f"{path}: {error}") from error
    return Folder(path=path, tree=tree, remembered=kept, hashed=hashed)


def _walk(folder: Path) -> Iterator[_Found]:
    """All files and links that count. No link is followed, so nothing outside of the folder is read."""
    rules = IgnoreRules()
    waiting, count = [""], 0
    while waiting:
        directory = waiting.pop()
        if directory.count("/") >= DEEPEST_FOLDER:
            raise FolderError(f"{folder / directory}: a file lies deeper than {DEEPEST_FOLDER} directories")
        for each in _inside(folder, directory, rules):
            if S_ISDIR(each.status.st_mode):
                waiting.append(each.path)
                continue
            _refuse_unfit(folder, each)
            count += 1
            if count > LARGEST_CONTENT_TREE:
                raise FolderError(f"{folder} has more than {LARGEST_CONTENT_TREE} files; put rules into .musterignore")
            yield each


def _inside(folder: Path, directory: str, rules: IgnoreRules) -> list[_Found]:
    """What stands in a directory and counts; rules that stand there are learned first."""
    descriptor = _opened_directory(folder, directory)
    try:
        return list(_counting(descriptor, directory, rules))
    finally:
        os.close(descriptor)


def _counting(descriptor: int, directory: str, rules: IgnoreRules) -> Iterator[_Found]:
    names = sorted(os.listdir(descriptor))
    if lines := rules_in(descriptor, names):
        rules.learn(directory, lines)
    for name in names:
        if name == ".git":  # a directory, or in a further working tree of git a file
            continue
        path = f"{directory}/{name}" if directory else name
        with suppress(FileNotFoundError):  # gone meanwhile
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if not rules.ignores(path, directory=S_ISDIR(status.st_mode)):
                target = os.readlink(name, dir_fd=descriptor) if S_ISLNK(status.st_mode) else ""
                yield _Found(path, status, target)


def _opened_directory(folder: Path, directory: str) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in directory.split("/") if directory else ():
        try:
            below = os.open(name, _INSIDE, dir_fd=descriptor)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder / directory)) from None
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _refuse_unfit(folder: Path, each: _Found) -> None:
    """Raise FolderError for what no tree can have."""
    try:
        refuse_bad_content_path(each.path)
    except MalformedTreeError as error:
        raise FolderError(f"{folder}: {error}") from error
    if S_ISLNK(each.status.st_mode):
        if link_leads_out(each.path, each.target):
            raise FolderError(
                f"{folder / each.path} leads to {each.target!r}, which is not in the folder: "
                f"copy what it leads to, or put /{each.path} into .musterignore"
            )
    elif not S_ISREG(each.status.st_mode):
        raise FolderError(f"{folder / each.path} is no file: put /{each.path} into .musterignore")


def _hashed(folder: Path, path: str, seen: Callable[[int], None] | None) -> tuple[FileStamp, str]:
    """What a file holds, and the stamp that goes with it. Raises FolderError where it changes all the time."""
    directory, _, name = path.rpartition("/")
    above = _opened_directory(folder, directory)
    try:
        descriptor = os.open(name, _FILE, dir_fd=above)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder / path)) from None
    finally:
        os.close(above)
    try:
        for _ in range(_TRIES):
            before = FileStamp.of(os.fstat(descriptor))
            content, size = sha256(), 0
            os.lseek(descriptor, 0, os.SEEK_SET)
            while piece := os.read(descriptor, _READ):
                content.update(piece)
                size += len(piece)
                if seen is not None:
                    seen(len(piece))
            if size == before.size and FileStamp.of(os.fstat(descriptor)) == before:
                return before, content.hexdigest()
    finally:
        os.close(descriptor)
    raise FolderError(
        f"{folder / path} changes while it is read: wait until it is whole, or put /{path} into .musterignore"
    )


def _refuse_too_large(folder: Path, found: Sequence[_Found], limits: FolderLimits) -> None:
    """Raise FolderError for a folder over a limit, with its largest entries."""
    size = sum(each.status.st_size for each in found if S_ISREG(each.status.st_mode))
    if size <= limits.size and len(found) <= limits.files:
        return
    by_size = size > limits.size
    if by_size:
        over = f"{folder} has {size_text(size)}; at most {size_text(limits.size)} are taken as code."
    else:
        over = f"{folder} has {len(found)} files; at most {limits.files} are taken as code."
    shown = [
        f"  {size_text(bytes_there):>10} {files:>8} files  /{entry}"
        for entry, bytes_there, files in _largest(found, by_size=by_size)
    ]
    raise FolderError("\n".join([f"{over} Put lines like these into {folder / '.musterignore'}:", *shown]))


def _largest(found: Sequence[_Found], *, by_size: bool) -> list[tuple[str, int, int]]:
    """The largest entries of the folder with their bytes and files; of a lone directory those in it."""
    above = ""
    while True:
        totals: dict[str, list[int]] = {}
        for each in found:
            if not each.path.startswith(above):
                continue
            name, slash, _ = each.path[len(above) :].partition("/")
            total = totals.setdefault(f"{above}{name}{slash}", [0, 0])
            total[0] += each.status.st_size
            total[1] += 1
        only = next(iter(totals))
        if len(totals) > 1 or not only.endswith("/"):
            break
        above = only
    order = sorted(totals.items(), key=lambda entry: entry[1][0 if by_size else 1], reverse=True)
    return [(name, total[0], total[1]) for name, total in order[:LARGEST_SHOWN]]
