"""A folder on this machine as a content tree: what is in it, without what its ignore rules leave out, hashed."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import NamedTuple

from muster.domain.data.tree import (
    LARGEST_CONTENT_TREE,
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
from muster.transfer.remembered import (
    NOTHING_REMEMBERED,
    FileStamp,
    RememberedFile,
    RememberedFolder,
    TreeSummary,
    entries_of,
)

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


class Folder:
    """A folder that was read."""

    def __init__(
        self, path: Path, remembered: RememberedFolder, found: Mapping[str, RememberedFile], hashed: int
    ) -> None:
        """`found` are all files and links. Raises FolderError for those that are no tree together."""
        self.path = path
        self.hashed = hashed
        """Files that were read."""
        self.unchanged = remembered.tree is not None
        """Whether all is as it was remembered."""
        self.remembered = remembered
        """What need not be read again next time."""
        self._found = found
        if not self.unchanged:
            tree, settled = self.tree, len(remembered.files) == len(found)
            self.remembered = replace(remembered, tree=TreeSummary.of(tree) if settled else None)

    @cached_property
    def tree(self) -> ContentTree:
        """What is in it."""
        try:
            return content_tree(entries_of(self._found))
        except MalformedTreeError as error:
            raise FolderError(f"{self.path}: {error}") from error

    @cached_property
    def summary(self) -> TreeSummary:
        """What there is to say of its tree."""
        return self.remembered.tree or TreeSummary.of(self.tree)

    def file_of(self, digest: str) -> Path:
        """A file that held this when it was read. Raises KeyError."""
        for each in self.tree.entries:
            if each.content == digest and not each.is_link:
                return self.path / each.path
        raise KeyError(digest)


class _Found(NamedTuple):
    """One file or link before it is read."""

    path: str
    status: os.stat_result
    known: RememberedFile | None
    """What it is, where that was remembered and has not changed."""
    target: str = ""
    """Where a link leads that is not known."""


def read_folder(
    path: Path,
    *,
    now_ns: int,
    remembered: RememberedFolder = NOTHING_REMEMBERED,
    limits: FolderLimits | None = None,
    seen: Callable[[int], None] | None = None,
) -> Folder:
    """What is in a folder. Raises FolderError, IgnoreRuleError or OSError.

    `now_ns` is the time as the file system has it, `remembered` what the last reading said, and `seen` is told how many
    bytes of a file were read.
    """
    walk = _Walk(path, remembered)
    found = list(walk.files())
    _refuse_too_large(path, found, limits or FolderLimits())
    files: dict[str, RememberedFile] = {}
    fresh: dict[str, RememberedFile] = {}
    """Files that cannot be remembered yet."""
    known = hashed = 0
    for each in found:
        if each.known is not None:
            files[each.path] = each.known
            known += 1
            continue
        if S_ISLNK(each.status.st_mode):
            stamp = FileStamp.of(each.status)
            read = RememberedFile(*stamp, ContentKind.LINK, each.target)
        else:
            stamp, digest = _hashed(path, each.path, seen)
            hashed += 1
            kind = ContentKind.PROGRAM if each.status.st_mode & 0o100 else ContentKind.FILE
            read = RememberedFile(*stamp, kind, digest)
        files[each.path] = read
        if not stamp.is_settled(now_ns):
            fresh[each.path] = read
    if known == len(files) == len(remembered.files) and remembered.tree is not None:
        return Folder(path, remembered, files, hashed)
    settled = {name: each for name, each in files.items() if name not in fresh} if fresh else files
    return Folder(path, RememberedFolder(files=settled, rules=walk.rules), files, hashed)


class _Walk:
    """A way through a folder. No link is followed, so nothing outside of the folder is read."""

    def __init__(self, folder: Path, before: RememberedFolder) -> None:
        self._folder = folder
        self._before = before
        self._learned = IgnoreRules()
        self._waiting = [""]
        self.rules: dict[str, str] = {}
        """Names of the ignore rules that count in each directory."""

    def files(self) -> Iterator[_Found]:
        """All files and links that count."""
        count = 0
        while self._waiting:
            directory = self._waiting.pop()
            if directory.count("/") >= DEEPEST_FOLDER:
                raise FolderError(f"{self._folder / directory}: a file lies deeper than {DEEPEST_FOLDER} directories")
            found = self._inside(directory)
            count += len(found)
            if count > LARGEST_CONTENT_TREE:
                raise FolderError(
                    f"{self._folder} has more than {LARGEST_CONTENT_TREE} files; put rules into .musterignore"
                )
            yield from found

    def _inside(self, directory: str) -> list[_Found]:
        """What stands in a directory and counts; rules that stand there are learned first."""
        descriptor = _opened_directory(self._folder, directory)
        try:
            with os.scandir(descriptor) as there:
                entries = {each.name: each for each in there}
            if lines := rules_in(descriptor, entries):
                self._learned.learn(directory, lines)
            return list(self._counting(descriptor, directory, entries))
        finally:
            os.close(descriptor)

    def _counting(self, descriptor: int, directory: str, entries: "Mapping[str, os.DirEntry[str]]") -> Iterator[_Found]:
        above = f"{directory}/" if directory else ""
        self.rules[directory] = self._learned.name(directory)
        same_rules = self._before.rules.get(directory) == self.rules[directory]
        remembered = self._before.files
        for name in sorted(entries):
            if name == ".git":  # a directory, or in a further working tree of git a file
                continue
            path = above + name
            each = entries[name]
            known = remembered.get(path)
            is_directory = each.is_dir(follow_symlinks=False)
            if (known is None or is_directory or not same_rules) and self._learned.ignores(
                path, directory=is_directory
            ):
                continue
            if is_directory:
                self._waiting.append(path)
                continue
            try:
                status = each.stat(follow_symlinks=False)
                if known is not None and known[:4] == FileStamp.of(status):
                    yield _Found(path, status, known)
                    continue
                target = os.readlink(name, dir_fd=descriptor) if S_ISLNK(status.st_mode) else ""
            except FileNotFoundError:  # gone meanwhile
                continue
            found = _Found(path, status, None, target)
            _refuse_unfit(self._folder, found)
            yield found


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
