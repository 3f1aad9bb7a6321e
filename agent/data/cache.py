"""What a node keeps of inputs: each content once, whoever uses it, and what was used longest ago goes first.

```
objects/ab/ab12…      what a file holds, read-only, named by its SHA-256
parts/NAME            the beginning of one that is still arriving, and NAME.version beside it
trees/DIGEST/PATH     hard links to objects: what executions see
sources/NAME          what a URL held when it was fetched last
leases/EXECUTION      what an execution uses; it counts as long as that has a directory
```

Every call may block, and may come from any thread.
"""

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from agent.data.held import HeldFile, HeldInput
from agent.data.shown import UNCHANGED, ShownTrees
from agent.executions.whole_file import write_whole
from muster.domain.data.digest import is_digest
from muster.domain.data.job_input import FoundInput
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree, content_tree
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.quantity import size_text
from muster.transfer.objects import ArrivingObject

DEFAULT_KEEP_FREE = 10
"""Percent of the file system that inputs leave free, as far as nothing that runs needs them."""
DEFAULT_CACHE_SHARE = 50
"""Percent of the file system that inputs take where no size was named."""
MORE_SPACE = 105
"""Percent of what is missing that must be free before it is fetched."""

_OWN, _PASSED_THROUGH, _READ_ONLY, _PRIVATE = 0o700, 0o711, 0o444, 0o600
_COPIED = 1024 * 1024
_ADDED_TO = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class InputCache:
    """The inputs that one node keeps below a directory."""

    def __init__(
        self,
        directory: Path,
        executions: Path,
        size: int | None = None,
        keep_free: int = DEFAULT_KEEP_FREE,
        disk: Callable[[Path], os.statvfs_result] = os.statvfs,
        goes_first: Callable[[Path, int], int] | None = None,
    ) -> None:
        """`size`: most bytes; None: a share of the file system. Raises OSError where it cannot be made.

        `goes_first` removes so many bytes of something else that is kept at a place, and says how many it were.
        """
        self.directory = directory
        self._executions = executions
        self._size = size
        self._keep_free = keep_free
        self._disk = disk
        self._goes_first = goes_first
        self._lock = threading.RLock()
        self._trees = ShownTrees(directory / "trees", self.place)
        directory.mkdir(parents=True, exist_ok=True)
        for each, mode in (("objects", _OWN), ("parts", _OWN), ("sources", _OWN), ("leases", _OWN)):
            (directory / each).mkdir(mode=mode, exist_ok=True)
        for passed in (directory, directory / "trees"):
            passed.mkdir(exist_ok=True)
            passed.chmod(_PASSED_THROUGH)

    def has(self, digest: str, size: int | None = None) -> int | None:
        """Bytes of an object that is here and as it was; None: it is not."""
        path = self.place(digest)
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        if found.st_mtime == UNCHANGED and size in {None, found.st_size}:
            return found.st_size
        self.place(digest).unlink(missing_ok=True)  # who sees it still sees what is there
        return None

    def known(self, url: str, project: str = "") -> FoundInput | None:
        """What a URL held when it was fetched last, if that is here and its server called it by a version.

        What came from other nodes of a project, which were believed, is known to that project alone.
        """
        try:
            said = json.loads(self._source(url).read_bytes())
            if said.get("believed_by", project) != project:
                return None
            found = FoundInput(url=url, size=said["size"], sha256=said["sha256"], version=said["version"])
            whole = bool(found.version) and self.has(found.sha256, found.size) is not None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if whole else None

    def part(self, url: str) -> "ArrivingInput":
        """What has arrived of a URL's file, which is one call's alone; raises OSError."""
        return ArrivingInput(part_place(self.directory, url))

    def take(
        self, arrived: "ArrivingInput | MovedInput", found: FoundInput, execution: str, believed_by: str = ""
    ) -> None:
        """Have a file that has arrived whole in its place, leased to an execution; raises OSError.

        `believed_by`: the project that believed other nodes what its URL holds; empty: its server said so.
        """
        arrived.sync()
        place = self.place(found.sha256)
        with self._lock:
            self.lease(execution, [found.sha256])
            place.parent.mkdir(mode=_OWN, exist_ok=True)
            if self.has(found.sha256, found.size) is None:
                arrived.path.replace(place)  # else executions may see the one that is there
        arrived.forget()
        if found.version:
            believed = {"believed_by": believed_by} if believed_by else {}
            write_whole(self._source(found.url), json.dumps(asdict(found) | believed).encode(), _PRIVATE)

    def lease(self, execution: str, digests: Iterable[str]) -> None:
        """Note that an execution uses objects from now on; raises OSError."""
        more = "".join(f"\n{digest}" for digest in digests)  # a line that is torn counts for nothing
        with self._lock:
            descriptor = os.open(self.directory / "leases" / execution, _ADDED_TO, _PRIVATE)
            try:
                os.write(descriptor, more.encode("ascii"))
            finally:
                os.close(descriptor)

    def release(self, execution: str) -> None:
        """Note that an execution is over. Harmless when repeated."""
        (self.directory / "leases" / execution).unlink(missing_ok=True)

    def content(self, digest: str) -> bytes | None:
        """What an object holds, if it is here and as its name says; for those that fit into memory."""
        if self.has(digest) is None:
            return None
        found = self.place(digest).read_bytes()
        if sha256(found).hexdigest() == digest:
            return found
        self.place(digest).unlink(missing_ok=True)  # who sees it still sees what is there
        return None

    def arriving(self, digest: str, size: int) -> ArrivingObject:
        """An object that is on its way, from where it was left; it is one call's alone. Raises OSError."""
        place = self.place(digest)
        return ArrivingObject(self.directory / "parts" / digest, place, digest, size, _READ_ONLY)

    def keep_arrived(self, digests: Iterable[str]) -> None:
        """Have objects that have arrived whole count as such; they are leased already. Raises OSError."""
        for digest in digests:
            os.utime(self.place(digest), (UNCHANGED, UNCHANGED))

    def shown(self, file_name: str, found: FoundInput) -> Path:
        """A directory with nothing but this file, which everybody may read; raises OSError."""
        entry = ContentEntry(path=file_name, kind=ContentKind.FILE, size=found.size, content=found.sha256)
        return self.shown_tree(content_tree([entry]))

    def shown_tree(self, tree: ContentTree) -> Path:
        """A directory with nothing but these files, whose objects are here; everybody may read them. Raises OSError."""
        with self._lock:
            return self._trees.show(tree)

    def make_space(self, missing: int, name: str) -> None:
        """Have the disk take so many bytes more; raises ExecutionError where what runs here leaves too little."""
        with self._lock:
            disk = self._disk(self.directory)
            whole, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
            needed = missing * MORE_SPACE // 100
            if (short := needed + whole * self._keep_free // 100 - free) > 0 and self._goes_first:
                free += self._goes_first(self.directory, short)
            limit = whole * DEFAULT_CACHE_SHARE // 100 if self._size is None else self._size
            kept = sum(found.st_size for _, found in self._objects())
            surplus = max(kept + missing - limit, needed + whole * self._keep_free // 100 - free)
            freed = self._evict(surplus) if surplus > 0 else 0
            if needed > free + freed:
                users = sorted(self._leases())
                held = f", and what {', '.join(users[:5])} use stays" if users else ""
                message = (
                    f"inputs.{name}: {size_text(needed)} are needed, and {size_text(free + freed)} are free at "
                    f"{self.directory}{held}"
                )
                raise ExecutionError(FailureKind.DISK_FULL, message)

    def _evict(self, surplus: int) -> int:
        """Remove what nobody uses, the longest unused first, until there is so much less; how much that was."""
        used = {digest for execution in self._leases() for digest in self._leased_to(execution)}
        kept = {path.stat().st_ino for path in map(self.place, used) if path.exists()}
        freed = 0
        for place, inodes in self._trees.longest_unused_first():
            if freed >= surplus:
                return freed
            if inodes.isdisjoint(kept):
                self._trees.forget(place)
                freed += self._remove_unlinked(inodes)
        return freed if freed >= surplus else freed + self._remove_unlinked(None, kept)

    def _remove_unlinked(self, inodes: set[int] | None, kept: Iterable[int] = ()) -> int:
        """Remove objects that nobody sees any more, of these or of all; how many bytes that were."""
        freed, stay = 0, set(kept)
        for path, found in [*self._objects()]:
            if found.st_nlink == 1 and found.st_ino not in stay and (inodes is None or found.st_ino in inodes):
                path.unlink(missing_ok=True)
                freed += found.st_size
        return freed

    def _leases(self) -> Iterator[str]:
        """Executions that use something; leases of others are forgotten."""
        for path in [*(self.directory / "leases").iterdir()]:
            if (self._executions / path.name).exists():
                yield path.name
            else:
                path.unlink(missing_ok=True)

    def _leased_to(self, execution: str) -> list[str]:
        with suppress(FileNotFoundError):
            text = (self.directory / "leases" / execution).read_text(encoding="ascii")
            return [digest for digest in text.split() if is_digest(digest)]
        return []

    def _objects(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in (self.directory / "objects").glob("??/*"):
            with suppress(FileNotFoundError):
                yield path, path.stat()

    def place(self, digest: str) -> Path:
        """Where an object lies, if it is here."""
        if not is_digest(digest):
            raise ValueError(f"{digest[:80]!r} is no SHA-256")
        return self.directory / "objects" / digest[:2] / digest

    def _source(self, url: str) -> Path:
        return self.directory / "sources" / _named(url)


class ArrivingInput:
    """A file while it arrives, hashed on the way; what is there at a break is gone on with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version_path = _version_of(path)
        self._hash = sha256()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE)
        if os.fstat(self._file).st_mode & 0o777 != _PRIVATE:  # it was whole, and nobody took it
            os.fchmod(self._file, _PRIVATE)
        self.offset = 0
        """Bytes that are there."""
        while found := os.read(self._file, _COPIED):
            self._hash.update(found)
            self.offset += len(found)
        self.version = self._version()
        """The version of which they are; empty: nobody knows, and it begins anew."""

    @property
    def file(self) -> int:
        """The descriptor of the file, for whoever locks it."""
        return self._file

    @property
    def sha256(self) -> str:
        """The hash of what is there."""
        return self._hash.hexdigest()

    def begin_anew(self, version: str) -> None:
        """Forget what is there; what comes is of this version."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self._hash, self.offset, self.version = sha256(), 0, version
        write_whole(self._version_path, version.encode(), _PRIVATE)

    def write(self, data: bytes) -> None:
        """Take the next bytes; raises OSError."""
        rest = memoryview(data)
        while rest:
            written = os.write(self._file, rest)
            self._hash.update(rest[:written])
            self.offset += written
            rest = rest[written:]

    def sync(self) -> None:
        """Have it on the disk, read-only, with the time that all objects have."""
        os.fchmod(self._file, _READ_ONLY)
        os.utime(self._file, (UNCHANGED, UNCHANGED))
        os.fsync(self._file)

    def forget(self) -> None:
        """Keep nothing for whoever goes on."""
        self.path.unlink(missing_ok=True)
        self._version_path.unlink(missing_ok=True)

    def close(self) -> None:
        """Keep what is there for whoever goes on with it."""
        os.close(self._file)

    def _version(self) -> str:
        try:
            return self._version_path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""


class MovedInput:
    """A file that the mover has made whole, hashed and synced."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def sync(self) -> None:
        """Do nothing: it is on the disk."""

    def forget(self) -> None:
        """Keep nothing for whoever goes on."""
        self.path.unlink(missing_ok=True)
        _version_of(self.path).unlink(missing_ok=True)


class GatheredInput(MovedInput):
    """A file that came in pieces, in any order."""

    def keep(self, place: Path) -> Path:
        """Have it in a place, which is returned; raises OSError."""
        self.sync()
        place.parent.mkdir(mode=_OWN, exist_ok=True)
        return self.path.replace(place)

    def sync(self) -> None:
        """Have it on the disk, read-only, with the time that all objects have."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(descriptor, _READ_ONLY)
            os.utime(descriptor, (UNCHANGED, UNCHANGED))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def laid_out(cache: InputCache, execution: str, files: Sequence[HeldFile]) -> HeldInput:
    """An input of these files, which are in the cache and are leased to an execution; raises OSError."""
    cache.lease(execution, sorted({each.sha256 for each in files}))
    tree = content_tree(
        ContentEntry(path=each.path, kind=ContentKind.FILE, size=each.size, content=each.sha256) for each in files
    )
    return HeldInput(directory=cache.shown_tree(tree), files=tuple(files))


def place_of(cache: InputCache, digest: str, size: int) -> Path | None:
    """Where an object is that is here and as it was; None: it is not."""
    return None if cache.has(digest, size) is None else cache.place(digest)


def part_place(directory: Path, url: str) -> Path:
    """Where a file lies in a cache while it arrives."""
    return directory / "parts" / _named(url)


def _version_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _named(text: str) -> str:
    return sha256(text.encode()).hexdigest()
