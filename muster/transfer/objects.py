"""Objects on disk, named by the SHA-256 of what they hold: a half one is never seen, and a whole one never changes.

objects/ab/ab12…   read-only, and what its name says
parts/ab12…        the beginning of one that is still arriving; its length is how far it has come
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Self

from muster.domain.data.digest import is_digest
from muster.domain.data.swarm import ContentSpan
from muster.domain.errors import MusterError

OBJECT_READ = 1024 * 1024
"""Bytes of an object that are read at once."""

_SYNCS_AT_ONCE = 8
_KEPT = 0o400
_NEW_PART = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class WrongContentError(MusterError):
    """What has arrived is not what its name says; nothing of it is kept."""


class ObjectFiles:
    """The objects of one directory. Only one program writes into it, and that one each object once at a time."""

    def __init__(self, directory: Path) -> None:
        """Raises OSError where the directory cannot be made."""
        self._objects = directory / "objects"
        self._parts = directory / "parts"
        for each in (self._objects, self._parts):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._removing = Lock()
        """Held while it is decided whether an object goes, so that none goes that was just used."""

    def size(self, digest: str) -> int | None:
        """Bytes of an object; None: it is not here."""
        try:
            return os.stat(self._text(digest)).st_size  # noqa: PTH116 - a tree has thousands, and a Path takes longer
        except FileNotFoundError:
            return None

    def begun(self, digest: str) -> int:
        """How many bytes of an object have arrived that is not whole; from there it may go on."""
        try:
            return (self._parts / _named(digest)).stat().st_size
        except FileNotFoundError:
            return 0

    def arriving(self, digest: str, size: int) -> "ArrivingObject":
        """An object that is to be taken in, from where it was left; raises OSError."""
        return ArrivingObject(self._parts / _named(digest), self._path(digest), digest, size)

    def place(self, digest: str) -> Path | None:
        """Where an object is; None: it is not here."""
        path = self._path(digest)
        return path if path.exists() else None

    def keep_gathered(self, digest: str, path: Path) -> Path:
        """Have a file as an object, which holds what that name says, on the disk; its place. Raises OSError."""
        place = self._path(digest)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(descriptor, _KEPT)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        path.replace(place)
        _sync_directory(place.parent)
        return place

    def read(self, digest: str, offset: int, length: int) -> Iterator[bytes]:
        """A part of an object, at most OBJECT_READ bytes at once. Raises FileNotFoundError where it is not here."""
        with self._path(digest).open("rb", buffering=0) as file:
            file.seek(offset)
            while length and (found := file.read(min(length, OBJECT_READ))):
                length -= len(found)
                yield found

    def use(self, digest: str) -> int | None:
        """Bytes of an object, which counts as used now; None: it is not here."""
        with self._removing:
            try:
                self.touch(digest)
            except FileNotFoundError:
                return None
            return self.size(digest)

    def remove_unused(self, digest: str, since: float) -> int | None:
        """Remove an object that was not used since that time of files; how many bytes it had, None: it stays."""
        with self._removing:
            try:
                found = self._path(digest).stat()
            except FileNotFoundError:
                return None
            if found.st_mtime > since:
                return None
            self.remove(digest)
            return found.st_size

    def among(self, number: int) -> Iterator[tuple[str, os.stat_result]]:
        """The whole objects whose digest begins with that byte; all 256 together are all objects."""
        yield from self._inside(self._objects.glob(f"{number:02x}/*"))

    def all(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every whole object with its size and times; what comes or goes meanwhile may be missing."""
        yield from self._inside(self._objects.glob("??/*"))

    def parts(self) -> Iterator[tuple[str, os.stat_result]]:
        """The beginnings of all objects that are not whole."""
        yield from self._inside(self._parts.iterdir())

    def touch(self, digest: str) -> None:
        """Note that an object was used now. Raises FileNotFoundError where it is not here."""
        os.utime(self._text(digest))

    def remove(self, digest: str) -> None:
        """Remove an object, if it is here; whoever reads it still gets it to its end."""
        self._path(digest).unlink(missing_ok=True)

    def remove_part(self, digest: str) -> None:
        """Forget how far an object had come."""
        (self._parts / _named(digest)).unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return Path(self._text(digest))

    def _text(self, digest: str) -> str:
        return f"{self._objects}/{_named(digest)[:2]}/{digest}"

    @staticmethod
    def _inside(paths: Iterator[Path]) -> Iterator[tuple[str, os.stat_result]]:
        for path in paths:
            if is_digest(path.name):
                with suppress(FileNotFoundError):
                    yield path.name, path.stat()


class ArrivingObject:
    """An object while it arrives: hashed on the way, and in its place only once it is whole and on the disk."""

    def __init__(self, part: Path, place: Path, digest: str, size: int, mode: int = _KEPT) -> None:
        """`mode`: the rights that it has once it is whole."""
        self._mode = mode
        self._part = part
        self._place = place
        self._digest = digest
        self.size = size
        """Bytes that it has once it is whole."""
        self._hash = sha256()
        self._descriptor = os.open(part, _NEW_PART, 0o600)
        try:
            self.offset = self._taken_up()
            """Bytes that have arrived."""
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def span(self) -> ContentSpan:
        """What is still to come of it."""
        return ContentSpan(digest=self._digest, offset=self.offset, length=self.size - self.offset)

    def close(self) -> None:
        """Keep what has arrived, for whoever goes on with it."""
        os.close(self._descriptor)

    def write(self, data: bytes) -> None:
        """Take the next bytes. Raises WrongContentError for more than there can be, OSError where the disk is full."""
        if self.offset + len(data) > self.size:
            self._discard()
            raise WrongContentError(
                f"the object {self._digest} has more than the {self.size} bytes that were announced"
            )
        rest = memoryview(data)
        while rest:
            written = os.write(self._descriptor, rest)
            self._hash.update(rest[:written])
            self.offset += written
            rest = rest[written:]

    def commit(self) -> None:
        """Give the object its place; it is on the disk when this returns. Raises WrongContentError."""
        self.check()
        commit_all([self])

    def check(self) -> None:
        """Raise WrongContentError for an object that is not what its name says; nothing of it is kept."""
        if self.offset != self.size or self._hash.hexdigest() != self._digest:
            self._discard()
            raise WrongContentError(
                f"what arrived as {self._digest} holds something else: it changed while it was read, or on the way"
            )

    def sync(self) -> None:
        """Have what arrived on the disk, with its rights."""
        os.fchmod(self._descriptor, self._mode)
        os.fsync(self._descriptor)

    def place(self) -> Path:
        """Give the object its place; the directory in which that is."""
        if not self._place.parent.is_dir():
            self._place.parent.mkdir(mode=0o700, exist_ok=True)
            _sync_directory(self._place.parent.parent)
        self._part.rename(self._place)
        return self._place.parent

    def _taken_up(self) -> int:
        """Hash what is there already."""
        offset = 0
        while found := os.read(self._descriptor, OBJECT_READ):
            self._hash.update(found)
            offset += len(found)
        if offset <= self.size:
            return offset
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._hash = sha256()
        return 0

    def _discard(self) -> None:
        self._part.unlink(missing_ok=True)


class Filling:
    """Objects that come as one stream of bytes."""

    def __init__(self, arriving: Iterable[ArrivingObject]) -> None:
        self._left = list(arriving)

    def take(self, data: bytes) -> None:
        """The next bytes; more than was asked for is refused by whoever compares it. Raises OSError."""
        rest = memoryview(data)
        while rest and self._left:
            arriving = self._left[0]
            part = rest[: arriving.size - arriving.offset]
            arriving.write(bytes(part))
            rest = rest[len(part) :]
            if arriving.offset == arriving.size:
                del self._left[0]


def commit_all(arrived: Sequence[ArrivingObject]) -> None:
    """Give checked objects their places; all are on the disk when this returns.

    A file system writes many files that wait at once nearly as fast as one: 2,000 small ones took 0.5 s with eight
    threads, and 10.7 s one after the other.
    """
    if not arrived:
        return
    with ThreadPoolExecutor(min(_SYNCS_AT_ONCE, len(arrived))) as beside:
        for _ in beside.map(ArrivingObject.sync, arrived):
            pass
        for _ in beside.map(_sync_directory, {each.place() for each in arrived}):
            pass


def _named(digest: str) -> str:
    """The digest, which is checked here once more, as it becomes a path."""
    if not is_digest(digest):
        raise ValueError(f"{digest[:80]!r} is no SHA-256")
    return digest


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
