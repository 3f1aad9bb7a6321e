"""History on the disk: a SQLite file for each grain and period, so that what is old goes by unlinking.

A file that is complete is rolled up into the next coarser one, in one transaction that also notes that it was: whenever
the console is killed, each file counts there once. Until then it is read itself.
"""

import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from console.telemetry.history.grain import GRAINS, TEN_SECONDS, Grain
from console.telemetry.history.open_blocks import BLOCK_SPAN, HistoryBlock
from muster.domain.errors import MusterError

LEAST_FREE = 256 * 1024 * 1024
"""Bytes of the disk that history leaves to others."""
LARGEST_BLOCK = 16 * 1024 * 1024
"""Bytes of one block without compression; a larger one is left out."""
_TABLES = """
CREATE TABLE IF NOT EXISTS name (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS block (name INTEGER NOT NULL, begin INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS block_place ON block (name, begin);
CREATE TABLE IF NOT EXISTS rolled (source TEXT PRIMARY KEY);
"""
_FORM = b"\1"
"""The first byte of a block: items with their lengths before them, compressed by zlib."""

RollUp = Callable[[str, Sequence[bytes], Grain], Sequence[bytes]]
"""What the items of one thing come to in a coarser grain."""


class HistoryFile(NamedTuple):
    """A file of history."""

    grain: Grain
    begin: datetime
    path: Path

    @property
    def end(self) -> datetime:
        """The end of its time."""
        return self.grain.end(self.begin)


class HistoryStore:
    """Blocks on the disk. Any thread may use it; what `write` has done outlives the console."""

    def __init__(self, directory: Path, limit: int, least_free: int = LEAST_FREE) -> None:
        """`limit`: bytes of all files together. Raises MusterError where nothing can be kept in the directory."""
        self._directory = directory
        self._limit = limit
        self._least_free = least_free
        self._changing = threading.Lock()
        try:
            for grain in GRAINS:
                (directory / grain.name).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise MusterError(f"cannot keep history in {directory}: {error.strerror}") from error
        self._rolled = {
            source for grain in GRAINS[1:] for file in self._files(grain) for source in self._noted_sources(file)
        }

    def write(self, blocks: Iterable[HistoryBlock]) -> None:
        """Keep blocks of the finest grain; raises MusterError where the disk does not take all of them."""
        by_file: dict[str, list[HistoryBlock]] = {}
        for block in blocks:
            by_file.setdefault(TEN_SECONDS.file_name(block.begin), []).append(block)
        for name, several in by_file.items():
            with self._changing, self._file(self._directory / TEN_SECONDS.name / name) as database:
                _insert(database, several)

    def read(self, of: str, since: datetime, until: datetime, grain: Grain) -> list[bytes]:
        """What is kept of something from a time to another, in about that grain.

        The last of it comes in finer grains, until that is rolled up. It has no order, and may begin a little earlier.
        """
        found: list[bytes] = []
        for finer in GRAINS[: GRAINS.index(grain) + 1]:
            for file in self._files(finer):
                wanted = file.begin < until and file.end > since
                if wanted and (finer is grain or not self._is_rolled(file)):
                    found += self._items(file, of, since, until)
        return found

    def roll_up(self, now: datetime, roll: RollUp) -> int:
        """Roll up the files that are complete; how many there were. Raises MusterError where the disk does not do."""
        done = 0
        for finer, coarser in pairwise(GRAINS):
            for file in self._files(finer):
                if file.end <= now and not self._is_rolled(file):
                    self._roll(file, coarser, roll)
                    done += 1
        return done

    def expire(self, now: datetime) -> int:
        """Remove what is old, and what is beyond the limit: the oldest of the finest grain first; how many files."""
        files = [file for grain in GRAINS for file in self._files(grain)]
        old = [file for file in files if file.end + file.grain.kept <= now]
        sizes = {file: _size(file.path) for file in files if file not in old}
        over = sum(sizes.values()) - self._limit
        for file in [file for file in sizes if file.end <= now]:  # the newest of each grain is being written
            if over <= 0:
                break
            over -= sizes[file]
            old.append(file)
        for file in old:
            _remove(file.path)
        return len(old)

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(_size(file.path) for grain in GRAINS for file in self._files(grain))

    def _files(self, grain: Grain) -> list[HistoryFile]:
        """The files of a grain, the oldest first."""
        paths = (self._directory / grain.name).glob("*.db")
        found = [HistoryFile(grain, begin, path) for path in paths if (begin := grain.begin(path.name)) is not None]
        return sorted(found, key=lambda file: file.begin)

    def _is_rolled(self, file: HistoryFile) -> bool:
        return _source_name(file) in self._rolled

    def _noted_sources(self, file: HistoryFile) -> Sequence[str]:
        with self._reading(file.path) as database:
            return () if database is None else [name for (name,) in database.execute("SELECT source FROM rolled")]

    def _items(self, file: HistoryFile, of: str, since: datetime, until: datetime) -> list[bytes]:
        longest = BLOCK_SPAN if file.grain is TEN_SECONDS else file.end - file.begin
        with self._reading(file.path) as database:
            if database is None:
                return []
            rows = database.execute(
                "SELECT data FROM block JOIN name ON block.name = number WHERE name.name = ? AND begin BETWEEN ? AND ?",
                (of, int((since - longest).timestamp()), int(until.timestamp())),
            ).fetchall()
        return [item for (data,) in rows for item in items_of(data)]

    def _roll(self, source: HistoryFile, coarser: Grain, roll: RollUp) -> None:
        target = self._directory / coarser.name / coarser.file_name(source.begin)
        with self._changing, self._file(target) as into, self._reading(source.path) as database:
            rows: Iterable[tuple[str, bytes]] = ()
            if database is not None:
                rows = database.execute(
                    "SELECT name.name, data FROM name JOIN block ON block.name = number ORDER BY name.name, begin"
                )
            _insert(
                into,
                (
                    HistoryBlock(
                        of, source.begin, roll(of, [item for _, data in several for item in items_of(data)], coarser)
                    )
                    for of, several in groupby(rows, lambda row: row[0])
                ),
            )
            into.execute("INSERT OR IGNORE INTO rolled (source) VALUES (?)", (_source_name(source),))
        self._rolled.add(_source_name(source))

    @contextmanager
    def _file(self, path: Path) -> Iterator[sqlite3.Connection]:
        """A file in a transaction of its own, made where it is not there; raises MusterError."""
        try:
            disk = os.statvfs(self._directory)
            if disk.f_bavail * disk.f_frsize < self._least_free:
                raise MusterError(f"cannot keep history in {self._directory}: the disk is full")
            database = sqlite3.connect(path, isolation_level=None)
            try:
                path.chmod(0o600)  # it names jobs
                for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "busy_timeout = 5000"):
                    database.execute(f"PRAGMA {pragma}")
                database.executescript(_TABLES)
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
            finally:
                database.close()  # rolls back what was not committed
        except (sqlite3.Error, OSError) as error:
            if _is_broken(error):
                _remove(path)
            raise MusterError(f"cannot keep history in {path}: {error}") from error

    @contextmanager
    def _reading(self, path: Path) -> Iterator[sqlite3.Connection | None]:
        """A file to read; None where it has gone, or is broken. Raises MusterError."""
        try:
            database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        except sqlite3.Error:
            yield None
            return
        try:
            database.execute("PRAGMA busy_timeout = 5000")
            database.execute("SELECT count(*) FROM rolled").fetchone()
        except sqlite3.Error as error:
            database.close()
            if _is_broken(error):
                _remove(path)
            yield None
            return
        try:
            yield database
        except sqlite3.Error as error:
            if _is_broken(error):
                _remove(path)
            raise MusterError(f"cannot read history in {path}: {error}") from error
        finally:
            database.close()


def block_data(items: Iterable[bytes]) -> bytes:
    """Items as one block of a file."""
    return _FORM + zlib.compress(b"".join(len(item).to_bytes(4, "big") + item for item in items))


def items_of(data: bytes) -> Sequence[bytes]:
    """The items of a block; none where it is none."""
    if data[:1] != _FORM:
        return ()
    unpacker = zlib.decompressobj()
    try:
        packed = unpacker.decompress(data[1:], LARGEST_BLOCK)
    except zlib.error:
        return ()
    found, place = [], 0
    while place + 4 <= len(packed):
        end = place + 4 + int.from_bytes(packed[place : place + 4], "big")
        if end > len(packed):
            break
        found.append(packed[place + 4 : end])
        place = end
    return found


def _insert(database: sqlite3.Connection, blocks: Iterable[HistoryBlock]) -> None:
    for block in blocks:
        database.execute("INSERT OR IGNORE INTO name (name) VALUES (?)", (block.of,))
        database.execute(
            "INSERT INTO block (name, begin, data) SELECT number, ?, ? FROM name WHERE name = ?",
            (int(block.begin.timestamp()), block_data(block.items), block.of),
        )


def _source_name(file: HistoryFile) -> str:
    return f"{file.grain.name}/{file.path.name}"


def _is_broken(error: Exception) -> bool:
    """Whether a file is no database, and never will be one again."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def _parts(path: Path) -> Sequence[Path]:
    """The files of a database, the one that makes it one last."""
    return (path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm"), path)


def _size(path: Path) -> int:
    found = 0
    for part in _parts(path):
        with suppress(OSError):
            found += part.stat().st_size
    return found


def _remove(path: Path) -> None:
    for part in reversed(_parts(path)):
        part.unlink(missing_ok=True)
