"""The log of one execution on its node: an append-only file of CRI log lines (`muster.domain.gangs.log`).

The coordinator keeps a copy of the same bytes, so a byte offset means the same at both ends. This part of it needs no
event loop: the supervisor of a process writes with it, too.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent.logs.lines import LogLines
from muster.domain.gangs.log import LogRecord, Stream, format_record

DEFAULT_LIMIT = 1 << 30
"""Bytes that are kept of one execution's output."""

SPACE_FOR_WORDS = 256
"""Bytes for a line that says what was lost."""

SPACE_TO_GO_ON = 1 << 20
"""Bytes that must be free again on a disk that was full."""


class LogFile:
    """Appends records to the log of one execution, and reads its bytes back.

    Appending never fails: what cannot be stored (the limit is reached, the disk is full) is replaced by a marker
    record that says so. Not for use from several threads. Only one process may append, but for `append_beside`. Where
    that is another one, nothing is changed here: a file is put in order by the first call that needs to know how it
    ends.
    """

    def __init__(self, path: Path | str, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        """Bytes that are kept."""
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size
        self._mine = False
        self._resume: dict[Stream, tuple[int, int]] | None = None
        self._full = False
        self._cut = False
        """Whether the limit was reached and that could not be said yet."""
        self._losses = Losses()

    @property
    def size(self) -> int:
        """Bytes in the log."""
        return self._size

    def append(self, record: LogRecord) -> None:
        """Store one record."""
        self.append_all((record,))

    def append_all(self, records: Sequence[LogRecord]) -> None:
        """Store several records with one write."""
        self._claim()
        if self._full or not records:
            return
        if self._losses.any and not self._has_space():
            self._losses.add(records)
            return
        lost = self._losses.told()
        data = b"".join(map(format_record, records))
        if self._size + len(lost) + len(data) > self.limit:
            data = data[: data.rfind(b"\n", 0, max(0, self.limit - self._size - len(lost))) + 1]
            self._full = self._cut = True
        wanted = data.count(b"\n")
        stored = self._write(lost + data, together=bool(lost)) - bool(lost)
        if stored >= 0:
            self._losses.clear()
        self._advance(records[: max(0, stored)])
        self._losses.add(records[max(0, stored) : wanted])
        if self._cut and not self._losses.any:
            self.settle()

    def append_beside(self, records: Sequence[LogRecord]) -> bool:
        """Store records while another process may append, too, all with one write; whether there was space for them.

        The end of the file is not put in order before, as it may be the other's line that is being written.
        """
        data = b"".join(map(format_record, records))
        with suppress(OSError):
            fits = os.fstat(self._file).st_size + len(data) <= self.limit and self._has_space()
            return fits and os.write(self._file, data) == len(data)
        return False

    def mark(self, text: str) -> None:
        """Store a line that Muster itself says about the log; readers see it as `[muster] text` on stderr."""
        self.append(muster_note(text))

    def finish(self) -> None:
        """No more records will come."""
        self._claim()
        self.settle()

    def settle(self) -> bool:
        """Say what was lost, now that there may be space again; whether nothing is left to be said."""
        if self._losses.any:
            if not self._write(self._losses.told()):
                return False
            self._losses.clear()
        if self._cut:
            text = f"{_LIMIT_REACHED} of {_gib(self.limit)} reached; the rest is not kept"
            self._cut = not self._write(format_record(muster_note(text)))
        return not self._cut

    def look(self) -> bool:
        """Take in what another process has appended; whether there is anything new."""
        before, self._size = self._size, os.fstat(self._file).st_size
        return self._size != before

    def resume_point(self, stream: Stream) -> tuple[int, int]:
        """When the last record of a stream was printed, and how many of its last records share that time.

        (0, 0) for a stream without records. Markers do not count: user code did not print them.
        """
        if self._resume is None:
            self._claim()
            self._resume = self._lines.resume_points()
        return self._resume[stream]

    def read(self, offset: int, limit: int) -> bytes:
        """Whole lines from `offset`, `limit` bytes of them at most but at least one; empty at the end of the log."""
        return self._lines.whole(offset, limit)

    def tail(self, lines: int) -> tuple[str, ...]:
        """The last lines of both streams, decoded, pieces joined and very long ones cut; for messages to people."""
        return self._lines.last(lines)

    def close(self) -> None:
        """Let go of the file; harmless when repeated. Nothing else may be called afterwards."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _claim(self) -> None:
        """Put the end of the file in order, before the first append."""
        if self._mine:
            return
        self._mine = True
        self._size = os.fstat(self._file).st_size
        if (end := self._lines.end()) != self._size:  # a crash in the middle of a write leaves half a line
            os.ftruncate(self._file, end)  # what comes next must not be glued to it
            self._size = end
        last = self._lines.last_record()
        self._full = last is not None and last.marker and _LIMIT_REACHED in last.text.decode(errors="replace")

    @property
    def _lines(self) -> LogLines:
        return LogLines(self._file, self._size)

    def _write(self, data: bytes, *, together: bool = False) -> int:
        """Write whole lines; how many of them are in the file now, fewer when there is no space, or none of `together`.

        On a full disk some space is left in the file for the words that say so.
        """
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:] if written else data)
        except OSError as problem:
            self._losses.because(problem)
            kept = 0 if together else data.rfind(b"\n", 0, max(0, written - SPACE_FOR_WORDS)) + 1
            # Not where this process believes the end to be: another one may have written lines beside it.
            os.ftruncate(self._file, os.fstat(self._file).st_size - written + kept)
            written = kept
        self._size += written
        return data.count(b"\n", 0, written)

    def _has_space(self) -> bool:
        """Whether it is worth going on; a disk that is as good as full would only collect words on losses."""
        disk = os.fstatvfs(self._file)
        return disk.f_bavail * disk.f_frsize >= SPACE_TO_GO_ON

    def _advance(self, records: Sequence[LogRecord]) -> None:
        if self._resume is None:
            return
        for record in records:
            if record.marker:
                continue
            last, count = self._resume[record.stream]
            self._resume[record.stream] = (record.time_ns, count + 1 if record.time_ns == last else 1)


class Losses:
    """Records that could not be stored, until the log says so."""

    def __init__(self) -> None:
        self._records = self._bytes = 0
        self._cause = ""

    @property
    def any(self) -> bool:
        """Whether something was lost that the log does not say."""
        return self._records > 0

    def add(self, records: Sequence[LogRecord]) -> None:
        """Count records that are lost."""
        self._records += len(records)
        self._bytes += sum(len(record.text) for record in records)

    def because(self, problem: OSError) -> None:
        """Note why they are."""
        self._cause = problem.strerror or str(problem)

    def clear(self) -> None:
        """Forget them, for the log says it now."""
        self._records = self._bytes = 0

    def told(self) -> bytes:
        """The line for the log; empty if nothing was lost."""
        if not self._records:
            return b""
        text = f"{self._records} records ({self._bytes} bytes) of output were lost: {self._cause}"
        return format_record(muster_note(text))


_LIMIT_REACHED = "output limit"


def muster_note(text: str) -> LogRecord:
    """A line that Muster itself says."""
    return LogRecord(time_ns=time.time_ns(), stream=Stream.STDERR, text=f"[muster] {text}".encode(), marker=True)


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 29 else f"{size} bytes"
