"""The logs of executions: `<logs>/<job>/<attempt>-<rank>.cri`, byte for byte what the agent wrote.

What `append` has acknowledged is in the kernel's page cache, so it survives the end of this process, however it ends.
It reaches the disk when the kernel writes it back (seconds later) and at the latest in `finish`; a machine that loses
power in between can lose the end of an unfinished log. The agent keeps its own file until the job is forgotten.

All methods block, for as long as the page cache takes, and `finish` and `drop_job` for as long as the disk takes. They
may be called from any thread: the event loop leaves through `asyncio.to_thread(logs.METHOD, …)` at the call.
"""

import os
import re
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from coordinator.store.logs.file import StoredLogFile, check_chunk
from coordinator.store.store import StoreError
from muster.domain.errors import UnknownNameError
from muster.domain.gangs.log import MAX_LINE, LogRecord, Stream, format_record
from muster.domain.ids import ExecutionId, JobId

KEPT_LOG_BYTES = 1 << 30
"""Bytes that are kept of one log; agents keep as many, and a line that says so."""

LOGS_LEAVE_FREE = 256 << 20
"""Bytes of the disk that logs leave to the database; a twentieth of the disk where that is less."""

_PART_LEFT = 20

_LOOK_EVERY = 1 << 20
"""Bytes of logs between two looks at the disk, as long as it has room."""

OPEN_FILES = 256
"""How many logs are kept open for writing; well below the usual limit of 1024 files a process."""

DISORDER = timedelta(seconds=1)
"""stdout and stderr are read apart, so the times in a file may step back by a little."""

MAX_LAST_LINE = 4096
"""Longest line that `last_lines` returns, in bytes; it goes into records and on screens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    """Some records of one log, in the order of the file."""

    records: tuple[LogRecord, ...] = ()
    next_offset: int = 0
    """Read on from here."""
    at_end: bool = False
    """The log is complete and nothing comes after these records."""


class LogStore:
    """Keeps the log of every execution, also after its end, until the job is dropped."""

    def __init__(
        self, directory: Path, *, limit: int = KEPT_LOG_BYTES, open_files: int = OPEN_FILES, left_free: int = 0
    ) -> None:
        """`left_free`: bytes of the disk that are not for logs."""
        self._directory = directory
        self._left_free = left_free
        self._until_look = 0
        """Bytes that may be appended before the disk is looked at again."""
        self._limit = limit
        self._open_files = open_files
        self._open: OrderedDict[ExecutionId, _Appendable] = OrderedDict()
        self._lock = threading.Lock()
        self._named: set[Path] = set()
        """Directories of jobs whose own names are surely on the disk."""

    def append(self, execution: ExecutionId, offset: int, data: bytes) -> int:
        """Append whole lines that begin at `offset` of the agent's file; returns how many bytes are stored now.

        What is already there is skipped. Nothing is written to a complete log, nor where `offset` lies beyond the end:
        the agent goes on from the size returned. Raises ValueError for data that are no log records, and for those with
        which the log reaches its limit; it is complete then and ends with a line that says so.
        """
        check_chunk(data)
        with self._lock, _reported(f"the log of {execution} cannot be kept"):
            log = self._appendable(execution)
            known = log.size - offset
            if log.complete or not 0 <= known < len(data):
                return log.size
            self._leave_room(len(data))
            if known and data[known - 1 : known] != b"\n":
                raise ValueError(f"the log of {execution} has no line end at offset {log.size}, as stored here")
            if log.size + len(data) - known <= self._limit + MAX_LINE:  # so the agent's own words on a limit fit in
                log.write(data[known:])
                return log.size
            log.write(_cut(data[known:], self._limit - log.size, self._limit))
        self.finish(execution)
        raise ValueError(f"the log of {execution} has reached the limit of {self._limit} bytes; nothing more is taken")

    def end(self, execution: ExecutionId, words: str) -> int:
        """Take nothing more of a log, which ends with these words; returns how many bytes are stored now."""
        marker = LogRecord(time_ns=time.time_ns(), stream=Stream.STDERR, text=words.encode(), marker=True)
        with self._lock, _reported(f"the log of {execution} cannot be kept"):
            log = self._appendable(execution)
            if not log.complete:
                log.write(format_record(marker))
            size = log.size
        self.finish(execution)
        return size

    def _leave_room(self, size: int) -> None:
        """Raise StoreError where the rest of the disk belongs to the database; the agent tries again."""
        self._until_look -= size
        if not self._left_free or self._until_look > 0:
            return
        disk = shutil.disk_usage(self._directory if self._directory.exists() else self._directory.parent)
        left = min(self._left_free, disk.total // _PART_LEFT)
        if disk.free < left + size:
            raise StoreError(
                f"the disk of the coordinator has less than {left >> 10} KiB left, which are for its database: logs "
                "wait on their nodes until there is more. Free some space, or delete jobs"
            )
        self._until_look = min(_LOOK_EVERY, left // 2)

    def finish(self, *executions: ExecutionId) -> None:
        """Mark logs as complete, durably: also what was appended is on the disk when this returns.

        Several together cost little more than one: the names in a directory reach the disk at once. The marker of an
        empty log goes there in its own time: nothing is lost with it, and the agent's next word tells the records.
        """
        written = [execution for execution in executions if self._mark(execution)]
        for directory in {self._file(execution).parent for execution in written}:
            with _reported(f"the logs in {directory} cannot be kept"), suppress(FileNotFoundError):  # dropped meanwhile
                self._name(directory)

    def _mark(self, execution: ExecutionId) -> bool:
        """Whether there is anything in the log, which is on the disk then, but for its name and that of the marker."""
        with _reported(f"the log of {execution} cannot be kept"):
            with self._lock:
                if not self._is_there(execution):
                    self._marker(execution).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._make_marker(execution)
                    return False
                log = self._appendable(execution)
                log.complete = True
                file = os.dup(log.fd) if log.size else None
            if file is not None:
                _sync_and_close(file)
            with suppress(FileNotFoundError):  # dropped meanwhile
                self._make_marker(execution)
        return file is not None

    def _make_marker(self, execution: ExecutionId) -> None:
        os.close(os.open(self._marker(execution), os.O_WRONLY | os.O_CREAT, 0o600))

    def _name(self, directory: Path) -> None:
        """Have the names in the directory of a job on the disk, and its own."""
        _sync_and_close(os.open(directory, os.O_RDONLY))
        if directory not in self._named:
            _sync_and_close(os.open(self._directory, os.O_RDONLY))
            self._named.add(directory)

    def complete(self, execution: ExecutionId) -> bool:
        """Whether `finish` was called: the log does not grow any more."""
        return self._marker(execution).exists()

    def kept(self, execution: ExecutionId) -> bool:
        """Whether there is anything of a log, be it that it is complete and empty."""
        return self.complete(execution) or self._file(execution).exists()

    def size(self, execution: ExecutionId) -> int:
        """How many bytes are stored: where the agent goes on. 0 for a log that is not there."""
        with self._lock, _reported(f"the log of {execution} cannot be kept"):
            return self._appendable(execution).size if self._is_there(execution) else 0

    def read(
        self,
        execution: ExecutionId,
        *,
        offset: int | None = None,
        since: datetime | None = None,
        tail: int | None = None,
        limit: int = 1000,
    ) -> LogBatch:
        """Up to `limit` records, and where to go on.

        The first call may choose where to begin: by time, by the number of last lines, or the later of both. Further
        calls pass `next_offset` as `offset`, and `since` again, as older records may follow newer ones by a little.
        """
        complete = self.complete(execution)
        with self._view(execution) as log:
            if log is None:
                return LogBatch(next_offset=offset or 0, at_end=complete)
            if offset is None:
                offset = max(log.at_time(_ns(since - DISORDER)) if since else 0, 0 if tail is None else log.tail(tail))
            records, next_offset = log.read(offset, limit)
        oldest = _ns(since) if since else 0
        return LogBatch(
            records=tuple(record for record in records if record.time_ns >= oldest),
            next_offset=next_offset,
            at_end=complete and next_offset >= log.end,
        )

    def last_lines(self, execution: ExecutionId, count: int) -> tuple[str, ...]:
        """The last lines of output, for people: pieces joined, very long lines cut, oldest first."""
        batch = self.read(execution, tail=count)
        lines = _Lines()
        while batch.records:
            lines.add(batch.records)
            batch = self.read(execution, offset=batch.next_offset)
        return lines.all()[-count:]

    def drop_job(self, job: JobId) -> None:
        """Forget the logs of a job. An `append` after this starts a new log, so refuse the job's agents first."""
        directory = self._job(job)
        self._named.discard(directory)
        with self._lock:
            for execution in [each for each in self._open if self._file(each).parent == directory]:
                self._open.pop(execution).close()
        with _reported(f"the logs in {directory} cannot be deleted"), suppress(FileNotFoundError):
            # Under its new name the next start knows that it was to go, if the end comes before all of it is gone.
            dropped = directory.with_name(_DROPPED + directory.name)
            shutil.rmtree(dropped, ignore_errors=True)
            shutil.rmtree(directory.rename(dropped))

    def unknown(self, jobs: Collection[JobId]) -> tuple[Path, ...]:
        """Directories with logs of other jobs than these; deletes what was dropped and not gone at the last end."""
        if not self._directory.exists():
            return ()
        for path in self._directory.glob(f"{_DROPPED}*"):
            with _reported(f"the logs in {path} cannot be deleted"):
                shutil.rmtree(path)
        found = sorted(self._directory.iterdir())
        return tuple(path for path in found if path.name not in jobs and _NAME.fullmatch(path.name))

    def close(self) -> None:
        """Let go of all files."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()

    def _is_there(self, execution: ExecutionId) -> bool:
        return execution in self._open or self._file(execution).exists()

    def _appendable(self, execution: ExecutionId) -> "_Appendable":
        log = self._open.get(execution)
        if log is None:
            log = _Appendable.at(self._file(execution), complete=self.complete(execution))
            self._open[execution] = log
            if len(self._open) > self._open_files:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(execution)
        return log

    @contextmanager
    def _view(self, execution: ExecutionId) -> Iterator[StoredLogFile | None]:
        """Readers have their own descriptor and no lock: a file only grows."""
        try:
            fd = os.open(self._file(execution), os.O_RDONLY)
        except FileNotFoundError:
            yield None
            return
        try:
            yield StoredLogFile.of(fd)
        finally:
            os.close(fd)

    def _file(self, execution: ExecutionId) -> Path:
        parts = _EXECUTION.fullmatch(execution)
        if parts is None:
            raise UnknownNameError(f"{execution[:200]!r} is no id of an execution")
        job, attempt, rank = parts.groups()
        return self._directory / job / f"{attempt}-{rank}.cri"

    def _marker(self, execution: ExecutionId) -> Path:
        return self._file(execution).with_suffix(".complete")

    def _job(self, job: JobId) -> Path:
        if not _NAME.fullmatch(job):
            raise UnknownNameError(f"{job[:200]!r} is no id of a job")
        return self._directory / job


_DROPPED = ".dropped-"
"""What the directory of a job is called, before its own name, while it is deleted."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""No path in the file system but a plain name in the logs' own directory can match."""

_EXECUTION = re.compile(rf"({_NAME.pattern})-([1-9][0-9]{{0,8}})-(0|[1-9][0-9]{{0,8}})")


@dataclass(slots=True)
class _Appendable:
    """A log that is open for writing; ends with a whole line."""

    fd: int
    size: int
    complete: bool

    @classmethod
    def at(cls, path: Path, *, complete: bool) -> "_Appendable":
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        try:
            fd = os.open(path, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(path, flags, 0o600)
        size = StoredLogFile.of(fd).end
        os.ftruncate(fd, size)  # a last line that was cut by a crash was never acknowledged
        return cls(fd, size, complete)

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self.fd, rest) :]
        except OSError:
            os.ftruncate(self.fd, self.size)
            raise
        self.size += len(data)

    def close(self) -> None:
        os.close(self.fd)


class _Lines:
    """Joins the pieces of lines."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._begun: dict[Stream, bytes] = {}

    def add(self, records: Collection[LogRecord]) -> None:
        for record in records:
            line = (self._begun.pop(record.stream, b"") + record.text)[:MAX_LAST_LINE]
            if record.partial:
                self._begun[record.stream] = line
            else:
                self._lines.append(line)

    def all(self) -> tuple[str, ...]:
        return tuple(line.decode(errors="replace") for line in (*self._lines, *self._begun.values()))


def _cut(data: bytes, room: int, limit: int) -> bytes:
    """The lines that have room, and one that says why there are no more."""
    text = f"[muster] the coordinator's limit of {limit >> 20} MiB for one log is reached; the rest is not kept"
    words = LogRecord(time_ns=time.time_ns(), stream=Stream.STDERR, text=text.encode(), marker=True)
    return data[: data.rfind(b"\n", 0, max(0, room)) + 1] + format_record(words)


@contextmanager
def _reported(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{what}: {error.strerror}. Free some space, or see what the kernel says of the disk"
        ) from error


def _sync_and_close(fd: int) -> None:
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _ns(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
