"""The logs of executions, byte for byte what the agents wrote.

What `append` has acknowledged is in the kernel's page cache, so it survives the end of this process, however it ends.
It reaches the disk when the kernel writes it back (seconds later) and at the latest in `finish`; a machine that loses
power in between can lose the end of an unfinished log. The agent keeps its own file until the job is forgotten.

All methods block, for as long as the page cache takes, and `finish` and `drop_job` for as long as the disk takes. They
may be called from any thread: the event loop leaves through `asyncio.to_thread(logs.METHOD, …)` at the call.
"""

import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from coordinator.store.logs.directory import LogDirectory
from coordinator.store.logs.disk import DiskReserve, disk_faults, sync_and_close
from coordinator.store.logs.file import StoredLogFile, check_chunk
from coordinator.store.logs.open_logs import OpenLogs
from muster.domain.gangs.log import MAX_LINE, LogRecord, Stream, format_record
from muster.domain.ids import ExecutionId, JobId

KEPT_LOG_BYTES = 1 << 30
"""Bytes that are kept of one log; agents keep as many, and a line that says so."""

LOGS_LEAVE_FREE = 256 << 20
"""Bytes of the disk that logs leave to the database; a twentieth of the disk where that is less."""

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
        self._limit = limit
        self._directory = LogDirectory(directory)
        self._reserve = DiskReserve(directory, left_free)
        self._open = OpenLogs(self._directory, open_files)
        self._lock = threading.Lock()
        """Held around the reserve and the open logs."""

    def append(self, execution: ExecutionId, offset: int, data: bytes) -> int:
        """Append whole lines that begin at `offset` of the agent's file; returns how many bytes are stored now.

        What is already there is skipped. Nothing is written to a complete log, nor where `offset` lies beyond the end:
        the agent goes on from the size returned. Raises ValueError for data that are no log records, and for those with
        which the log reaches its limit; it is complete then and ends with a line that says so.
        """
        check_chunk(data)
        with self._lock, disk_faults(f"the log of {execution} cannot be kept"):
            log = self._open.of(execution)
            known = log.size - offset
            if log.complete or not 0 <= known < len(data):
                return log.size
            self._reserve.require_room(len(data))
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
        with self._lock, disk_faults(f"the log of {execution} cannot be kept"):
            log = self._open.of(execution)
            if not log.complete:
                log.write(format_record(marker))
            size = log.size
        self.finish(execution)
        return size

    def finish(self, *executions: ExecutionId) -> None:
        """Mark logs as complete, durably: also what was appended is on the disk when this returns.

        Several together cost little more than one: the names in a directory reach the disk at once. The marker of an
        empty log goes there in its own time: nothing is lost with it, and the agent's next word tells the records.
        """
        self._directory.sync_names([execution for execution in executions if self._mark(execution)])

    def _mark(self, execution: ExecutionId) -> bool:
        """Whether there is anything in the log, which is on the disk then, but for its name and that of the marker."""
        with disk_faults(f"the log of {execution} cannot be kept"):
            with self._lock:
                if not self._is_there(execution):
                    self._directory.mark_empty(execution)
                    return False
                log = self._open.of(execution)
                log.complete = True
                file = os.dup(log.fd) if log.size else None
            if file is not None:
                sync_and_close(file)
            with suppress(FileNotFoundError):  # dropped meanwhile
                self._directory.mark_complete(execution)
        return file is not None

    def complete(self, execution: ExecutionId) -> bool:
        """Whether `finish` was called: the log does not grow any more."""
        return self._directory.is_complete(execution)

    def kept(self, execution: ExecutionId) -> bool:
        """Whether there is anything of a log, be it that it is complete and empty."""
        return execution in self._open or self.complete(execution) or self._directory.log(execution).exists()

    def size(self, execution: ExecutionId) -> int:
        """How many bytes are stored: where the agent goes on. 0 for a log that is not there."""
        with self._lock, disk_faults(f"the log of {execution} cannot be kept"):
            return self._open.of(execution).size if self._is_there(execution) else 0

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
        with self.view(execution) as log:
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
        with self._lock:
            self._open.close_job(job)
        self._directory.drop(job)

    def unknown(self, jobs: Collection[JobId]) -> tuple[Path, ...]:
        """Directories with logs of other jobs than these; deletes what was dropped and not gone at the last end."""
        return self._directory.unknown(jobs)

    def close(self) -> None:
        """Let go of all files."""
        with self._lock:
            self._open.close()

    def _is_there(self, execution: ExecutionId) -> bool:
        return execution in self._open or self._directory.log(execution).exists()

    def points_file(self, execution: ExecutionId) -> Path:
        """Where the points of a log are listed; the file is the business of who lists them."""
        return self._directory.points(execution)

    @contextmanager
    def view(self, execution: ExecutionId) -> Iterator[StoredLogFile | None]:
        """A log as it is now; None where there is none. Readers have their own descriptor: a file only grows."""
        try:
            fd = os.open(self._directory.log(execution), os.O_RDONLY)
        except FileNotFoundError:
            yield None
            return
        try:
            yield StoredLogFile.of(fd)
        finally:
            os.close(fd)


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


def _ns(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
