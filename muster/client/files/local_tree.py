"""Trees of files on this machine; the work is done in threads, as disks may be slow."""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISLNK

from muster.client.files.content_hash import ContentHash, HashedRange
from muster.client.files.tree import (
    DEEPEST_TREE,
    KEPT_MODE,
    LARGEST_TREE,
    TOO_DEEP,
    EntryKind,
    InvalidTreeError,
    TreeEntry,
    TreeListing,
    beside_name,
    kind_of,
    parent_of,
)
from muster.transfer.ignore_rules import IgnoreRules, rules_in

_PIECE = 1024 * 1024
"""Bytes that are read or written in one visit to a thread."""

_INSIDE = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_RDONLY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700


class LocalTree:
    """A tree on this machine. No link below it is followed, whoever made it: what is written stays in the tree."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    def within(self, name: str) -> "LocalTree":
        """The tree at a name in this one."""
        return LocalTree(self._path / name)

    async def kind(self) -> EntryKind | None:
        """What stands at the path of the tree, behind a link, too; None: nothing."""
        try:
            return _entry("", await asyncio.to_thread(self._path.stat), "").kind
        except FileNotFoundError:
            return None

    async def listing(self, rules: IgnoreRules | None = None) -> TreeListing | None:
        """What is there, without what the rules leave out, which learn from the files with rules there."""
        return await asyncio.to_thread(self._listing, rules)

    async def pieces(self, entry: TreeEntry) -> AsyncGenerator[bytes, None]:
        """The content of a file, as long as it was when it was listed."""
        descriptor = await asyncio.to_thread(self._open, entry.path)
        try:
            left = entry.size
            while left:
                piece = await asyncio.to_thread(os.read, descriptor, min(_PIECE, left))
                if not piece:
                    raise OSError(errno.EIO, "it became shorter while it was copied", self._shown(entry.path))
                left -= len(piece)
                yield piece
        finally:
            os.close(descriptor)

    async def told(self, path: str, offset: int, length: int) -> HashedRange | None:  # noqa: ARG002 - no other side
        """Nothing: there is no other side."""
        return None

    async def hashed(self, path: str) -> HashedRange:
        """What a file holds."""
        return await asyncio.to_thread(self._hashed, path)

    async def new_file(self, path: str, token: str) -> "LocalNewFile":
        """A file that takes its place, or that of another one, once it is whole."""
        return LocalNewFile(self, path, token)

    async def make_directory(self, path: str) -> None:
        """Make a directory that only its owner may enter so far."""

        def make() -> None:
            with self.above(path) as (above, name):
                os.mkdir(name, _PRIVATE_DIRECTORY, dir_fd=above)

        await asyncio.to_thread(make)

    async def make_link(self, entry: TreeEntry, token: str) -> None:
        """Make a link, also in place of something that is no directory."""

        def make() -> None:
            with self.above(entry.path) as (above, name):
                beside = beside_name(name, token)
                os.symlink(entry.target, beside, dir_fd=above)
                try:
                    os.rename(beside, name, src_dir_fd=above, dst_dir_fd=above)
                except OSError:
                    os.unlink(beside, dir_fd=above)
                    raise

        await asyncio.to_thread(make)

    async def adjust(self, entry: TreeEntry, changed: int | None) -> None:
        """Give a file or a directory its mode, and a time of the last change where one is said."""

        def adjust() -> None:
            descriptor = self._open(entry.path)
            try:
                settle(descriptor, entry.mode, changed)
            finally:
                os.close(descriptor)

        await asyncio.to_thread(adjust)

    async def remove(self, entry: TreeEntry) -> None:
        """Remove a file, a link, or an empty directory."""

        def remove() -> None:
            with self.above(entry.path) as (above, name):
                if entry.kind is EntryKind.DIRECTORY:
                    os.rmdir(name, dir_fd=above)
                else:
                    os.unlink(name, dir_fd=above)

        await asyncio.to_thread(remove)

    @contextmanager
    def above(self, path: str) -> Iterator[tuple[int, str]]:
        """The directory in which something stands, open, and the name of it there. Raises OSError."""
        if not path:
            # The tree itself, where a person has said it: links on the way to it are followed.
            whole = self._path.absolute()
            with _opened(os.open(whole.parent, os.O_DIRECTORY | os.O_CLOEXEC)) as above:
                yield above, whole.name
            return
        *directories, name = path.split("/")
        with _opened(self._descended(directories)) as above:
            yield above, name

    def _descended(self, directories: list[str]) -> int:
        """A directory below that of the tree, open; none of those on the way is a link."""
        descriptor = os.open(self._path, os.O_DIRECTORY | os.O_CLOEXEC)
        for each in directories:
            try:
                below = os.open(each, _INSIDE, dir_fd=descriptor)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._shown("/".join(directories))) from None
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor

    def _open(self, path: str) -> int:
        """A file or a directory, open for reading; not behind a link."""
        if not path:
            return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        with self.above(path) as (above, name):
            try:
                return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._shown(path)) from None

    def _shown(self, path: str) -> str:
        return str(self._path / path)

    def _hashed(self, path: str) -> HashedRange:
        content = ContentHash()
        with _opened(self._open(path)) as descriptor:
            while piece := os.read(descriptor, _PIECE):
                content.update(piece)
        return content.so_far

    def _listing(self, rules: IgnoreRules | None) -> TreeListing | None:
        try:
            root = _entry("", self._path.stat(), "")
        except FileNotFoundError:
            return None
        entries: dict[str, TreeEntry] = {}
        troubles: dict[str, str] = {}
        holding: set[str] = set()
        waiting = [root] if root.kind is EntryKind.DIRECTORY else []
        while waiting:
            above = waiting.pop()
            if above.path.count("/") >= DEEPEST_TREE:
                troubles[above.path] = TOO_DEEP
                continue
            try:
                with _opened(self._descended(above.path.split("/") if above.path else [])) as descriptor:
                    inside = list(_inside(descriptor, above.path, rules))
            except OSError as error:
                if not above.path:
                    raise
                troubles[above.path] = (error.strerror or "it cannot be read").lower()
                continue
            kept = [each for each in inside if rules is None or not _is_ignored(each, rules)]
            if len(kept) < len(inside):
                holding.update(_and_above(above.path))
            entries |= {each.path: each for each in kept}
            waiting += [each for each in kept if each.kind is EntryKind.DIRECTORY]
            if len(entries) > LARGEST_TREE:
                raise InvalidTreeError(f"more than {LARGEST_TREE} files are too many at once")
        return TreeListing(root=root, entries=entries, troubles=troubles, holding_ignored=frozenset(holding))


class LocalNewFile:
    """A file on this machine while it is written."""

    def __init__(self, tree: LocalTree, path: str, token: str) -> None:
        self._tree = tree
        self._path = path
        self._token = token
        self._descriptor: int | None = None
        self._made = False
        self._waiting = bytearray()

    async def write(self, piece: bytes) -> None:
        """Take the next piece."""
        self._waiting += piece
        if len(self._waiting) >= _PIECE:
            await asyncio.to_thread(self._flush)

    async def told(self, offset: int, length: int) -> HashedRange | None:  # noqa: ARG002 - no other side
        """Nothing: there is no other side."""
        return None

    async def finish(self, mode: int, changed: int | None) -> None:
        """Write all that was taken, with this mode and this time of the last change; None: now."""

        def finish() -> None:
            descriptor = self._flush()
            settle(descriptor, mode, changed)
            self._descriptor = None
            os.close(descriptor)

        await asyncio.to_thread(finish)

    async def commit(self) -> None:
        """Take the place."""

        def commit() -> None:
            with self._tree.above(self._path) as (above, name):
                os.rename(beside_name(name, self._token), name, src_dir_fd=above, dst_dir_fd=above)

        await asyncio.to_thread(commit)

    async def discard(self) -> None:
        """Leave nothing; does not raise."""

        def discard() -> None:
            if self._descriptor is not None:
                os.close(self._descriptor)
            with suppress(OSError), self._tree.above(self._path) as (above, name):
                os.unlink(beside_name(name, self._token), dir_fd=above)

        if self._made:
            await asyncio.to_thread(discard)

    def _flush(self) -> int:
        if self._descriptor is None:
            with self._tree.above(self._path) as (above, name):
                self._made = True
                self._descriptor = os.open(beside_name(name, self._token), _NEW, _PRIVATE_FILE, dir_fd=above)
        rest = memoryview(self._waiting)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        rest.release()
        self._waiting = bytearray()
        return self._descriptor


def settle(descriptor: int, mode: int, changed: int | None) -> None:
    """Give what is open its mode, and a time of the last change where one is said."""
    os.fchmod(descriptor, mode & KEPT_MODE)
    if changed is not None:
        os.utime(descriptor, (changed, changed))


@contextmanager
def _opened(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _inside(descriptor: int, directory: str, rules: IgnoreRules | None) -> Iterator[TreeEntry]:
    """What stands in a directory; rules that stand there are learned first."""
    names = os.listdir(descriptor)
    if rules is not None:
        lines = rules_in(descriptor, names)
        if lines:
            rules.learn(directory, lines)
    for name in sorted(names):
        with suppress(FileNotFoundError):  # gone meanwhile
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            target = os.readlink(name, dir_fd=descriptor) if S_ISLNK(status.st_mode) else ""
            yield _entry(f"{directory}/{name}" if directory else name, status, target)


def _is_ignored(each: TreeEntry, rules: IgnoreRules) -> bool:
    return rules.ignores(each.path, directory=each.kind is EntryKind.DIRECTORY)


def _and_above(path: str) -> Iterator[str]:
    while path:
        yield path
        path = parent_of(path)


def _entry(path: str, status: os.stat_result, target: str) -> TreeEntry:
    kind = kind_of(status.st_mode)
    return TreeEntry(
        path=path,
        kind=kind,
        mode=status.st_mode & 0o7777,
        size=status.st_size if kind is EntryKind.FILE else 0,
        changed_ns=max(0, status.st_mtime_ns),
        target=target,
    )
