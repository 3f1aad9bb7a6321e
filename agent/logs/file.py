"""The log of one execution on its node: an append-only file of CRI log lines (`muster.domain.gangs.log`).

The coordinator keeps a copy of the same bytes, so a byte offset means the same at both ends. This part of it needs no
event loop: the supervisor of a process writes with it, too.
"""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from muster.domain.gangs.log import MAX_LINE, LogRecord, Stream, format_record, parse_record

DEFAULT_LIMIT = 1 << 30
"""Bytes that are kept of one execution's output."""

READ_BACK_BYTES = 1 << 20
"""Bytes read at once on the way back from the end of the file."""

TAIL_WINDOW = 256 * 1024
"""Bytes from which `tail` takes its lines; enough for a stack trace, little enough for a message."""


MAX_TAIL_LINE = 2048
"""Characters of a line that `tail` gives."""


SPACE_FOR_WORDS = 256
"""Bytes for a line that says what was lost."""

SPACE_TO_GO_ON = 1 << 20
"""Bytes that must be free again on a disk that was full."""


class LogFile:
    """Appends records to the log of one execution, and reads its bytes back.

    Appending never fails: what cannot be stored (the limit is reached, the disk is full) is replaced by a marker
    record that says so. Not for use from several threads. Only one process may append, and where that is another one,
    nothing is changed here: a file is put in order by the first call that needs to know how it ends.
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
        self._lost = self._lost_bytes = 0
        self._lost_because = ""

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
        if self._lost and not self._has_space():
            self._lose(records)
            return
        lost = self._loss()
        data = b"".join(map(format_record, records))
        if self._size + len(lost) + len(data) > self.limit:
            data = data[: data.rfind(b"\n", 0, max(0, self.limit - self._size - len(lost))) + 1]
            self._full = self._cut = True
        wanted = data.count(b"\n")
        stored = self._write(lost + data, together=bool(lost)) - bool(lost)
        if stored >= 0:
            self._lost = self._lost_bytes = 0
        self._advance(records[: max(0, stored)])
        self._lose(records[max(0, stored) : wanted])
        if self._cut and not self._lost:
            self.settle()

    def mark(self, text: str) -> None:
        """Store a line that Muster itself says about the log; readers see it as `[muster] text` on stderr."""
        self.append(_note(text))

    def finish(self) -> None:
        """No more records will come."""
        self._claim()
        self.settle()

    def settle(self) -> bool:
        """Say what was lost, now that there may be space again; whether nothing is left to be said."""
        if self._lost:
            if not self._write(self._loss()):
                return False
            self._lost = self._lost_bytes = 0
        if self._cut:
            text = f"{_LIMIT_REACHED} of {_gib(self.limit)} reached; the rest is not kept"
            self._cut = not self._write(format_record(_note(text)))
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
            self._resume = self._scan()
        return self._resume[stream]

    def read(self, offset: int, limit: int) -> bytes:
        """Whole lines from `offset`, `limit` bytes of them at most but at least one; empty at the end of the log."""
        data = self._bytes(offset, limit)
        end = data.rfind(b"\n") + 1
        if end == 0 and data:
            data = self._bytes(offset, max(limit, MAX_LINE))
            end = data.find(b"\n") + 1
        return data[:end]

    def tail(self, lines: int) -> tuple[str, ...]:
        """The last lines of both streams, decoded, pieces joined and very long ones cut; for messages to people."""
        start = max(0, self._size - TAIL_WINDOW)
        window = self._bytes(start, TAIL_WINDOW)
        if start:
            window = window[window.find(b"\n") + 1 :]
        return tuple(map(_readable, tuple(_joined(window.split(b"\n")[:-1]))[-lines:])) if lines > 0 else ()

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
        self._cut_torn_line()
        self._full = self._ends_with_limit()

    def _bytes(self, offset: int, limit: int) -> bytes:
        return os.pread(self._file, max(0, min(limit, self._size - offset)), offset)

    def _write(self, data: bytes, *, together: bool = False) -> int:
        """Write whole lines; how many of them are in the file now, fewer when there is no space, or none of `together`.

        On a full disk some space is left in the file for the words that say so.
        """
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:] if written else data)
        except OSError as problem:
            self._lost_because = problem.strerror or str(problem)
            written = 0 if together else data.rfind(b"\n", 0, max(0, written - SPACE_FOR_WORDS)) + 1
            os.ftruncate(self._file, self._size + written)
        self._size += written
        return data.count(b"\n", 0, written)

    def _has_space(self) -> bool:
        """Whether it is worth going on; a disk that is as good as full would only collect words on losses."""
        disk = os.fstatvfs(self._file)
        return disk.f_bavail * disk.f_frsize >= SPACE_TO_GO_ON

    def _loss(self) -> bytes:
        """The words for what was lost; empty if nothing was."""
        if not self._lost:
            return b""
        text = f"{self._lost} records ({self._lost_bytes} bytes) of output were lost: {self._lost_because}"
        return format_record(_note(text))

    def _lose(self, records: Sequence[LogRecord]) -> None:
        self._lost += len(records)
        self._lost_bytes += sum(len(record.text) for record in records)

    def _advance(self, records: Sequence[LogRecord]) -> None:
        if self._resume is None:
            return
        for record in records:
            if record.marker:
                continue
            last, count = self._resume[record.stream]
            self._resume[record.stream] = (record.time_ns, count + 1 if record.time_ns == last else 1)

    def _cut_torn_line(self) -> None:
        """A crash in the middle of a write leaves half a line; what comes next must not be glued to it."""
        end = self._size
        for start, block in self._blocks():
            newline = block.rfind(b"\n")
            end = start + newline + 1
            if newline >= 0:
                break
        if end != self._size:
            os.ftruncate(self._file, end)
            self._size = end

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Offset and content of the file's blocks, from the last to the first."""
        end = self._size
        while end > 0:
            start = max(0, end - READ_BACK_BYTES)
            yield start, self._bytes(start, end - start)
            end = start

    def _lines_backwards(self) -> Iterator[bytes]:
        rest = b""
        for _, block in self._blocks():
            first, *lines = (block + rest).split(b"\n")
            yield from reversed(lines)
            rest = first[:MAX_LINE]  # longer only where the file is damaged
        yield rest

    def _scan(self) -> dict[Stream, tuple[int, int]]:
        """The resume points, read from the end of the file."""
        points = dict.fromkeys(Stream, (0, 0))
        wanted = {stream.encode(): stream for stream in Stream}
        for line in self._lines_backwards():
            stream = wanted.get(line[_STREAM_FIELD])
            record = None if stream is None else _parsed(line)
            if stream is None or record is None or record.marker:
                continue
            last, count = points[stream]
            if count and record.time_ns != last:
                del wanted[stream.encode()]
            else:
                points[stream] = (record.time_ns, count + 1)
            if not wanted:
                break
        return points

    def _ends_with_limit(self) -> bool:
        window = self._bytes(max(0, self._size - MAX_LINE), MAX_LINE)
        record = _parsed(window.rstrip(b"\n").rpartition(b"\n")[2])
        return record is not None and record.marker and _LIMIT_REACHED in record.text.decode(errors="replace")


_STREAM_FIELD = slice(31, 37)
_LIMIT_REACHED = "output limit"


def _readable(line: str) -> str:
    return line if len(line) <= MAX_TAIL_LINE else line[:MAX_TAIL_LINE] + "…"


def _note(text: str) -> LogRecord:
    return LogRecord(time_ns=time.time_ns(), stream=Stream.STDERR, text=f"[muster] {text}".encode(), marker=True)


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 29 else f"{size} bytes"


def _parsed(line: bytes) -> LogRecord | None:
    """None for a line that is damaged, as a power cut may leave it."""
    try:
        return parse_record(line)
    except ValueError:
        return None


def _joined(lines: Sequence[bytes]) -> Iterator[str]:
    """Lines of output, in the order in which they ended; those that have not ended yet come last."""
    pieces: dict[Stream, bytes] = {}
    for record in filter(None, map(_parsed, lines)):
        if record.marker:
            yield record.text.decode(errors="replace")
            continue
        text = pieces.pop(record.stream, b"") + record.text
        if record.partial:
            pieces[record.stream] = text
        else:
            yield text.decode(errors="replace")
    yield from (text.decode(errors="replace") for text in pieces.values())
