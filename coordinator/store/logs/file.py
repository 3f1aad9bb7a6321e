"""One log file as bytes: what may be appended to it, and finding a place in it without reading all of it."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from muster.domain.gangs.log import MAX_LINE, MAX_RECORD, LogRecord, Stream, parse_record, parse_time

LOOK_BACK_BYTES = 64 * 1024
"""Bytes read at a time when looking backwards."""

MAX_BATCH = 1024 * 1024
"""Most bytes that one read returns; holds at least one record."""

_CHUNK = re.compile(
    rb"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{9}Z"
    rb" (?:stdout|stderr) [FP](?::[^ \n]*)?(?: [^\n]{0,%d})?\n)*+" % MAX_RECORD,
)
_SECOND = len("2026-11-21T08:48:50")
_TIME = len("2026-11-21T08:48:50.123456789Z")


def check_chunk(data: bytes) -> None:
    """Raise ValueError, naming the culprit, unless these are whole lines and every one is a record."""
    # Millions of lines a minute come through here: the shape of all of them is checked at once, and each distinct
    # second only once.
    if _CHUNK.fullmatch(data):
        for second in {line[:_SECOND] for line in data.split(b"\n")[:-1]}:
            parse_time(second + b".000000000Z")
        return
    if not data.endswith(b"\n"):
        raise ValueError(f"a log comes in whole lines; this chunk ends within one: …{data[-40:]!r}")
    for line in data.split(b"\n")[:-1]:
        parse_record(line)
        if len(line) >= MAX_LINE:
            raise ValueError(f"a line of a log has at most {MAX_LINE} bytes; this one has {len(line)}: {line[:60]!r}…")
    raise ValueError(f"the lines of this chunk are no log records: {data[:60]!r}…")


@dataclass(frozen=True, slots=True)
class StoredLogFile:
    """A view of the whole lines that a file has now; it may grow meanwhile."""

    fd: int
    end: int
    """Where the last whole line ends."""

    @classmethod
    def of(cls, fd: int) -> "StoredLogFile":
        """What is in the file up to its last line end."""
        end = os.fstat(fd).st_size
        while end:
            start = max(0, end - LOOK_BACK_BYTES)
            newline = os.pread(fd, end - start, start).rfind(b"\n")
            if newline >= 0:
                return cls(fd, start + newline + 1)
            end = start
        return cls(fd, 0)

    def read(self, offset: int, limit: int) -> tuple[list[LogRecord], int]:
        """Up to `limit` records from `offset` on, and the offset after them."""
        block = os.pread(self.fd, max(0, min(MAX_BATCH, self.end - offset)), offset)
        whole = block.rfind(b"\n") + 1
        if not whole:  # nothing more, or a megabyte of damage that a reader must get past
            return ([self._mark(1, None)] if block else []), offset + len(block)
        lines = block[: whole - 1].split(b"\n")[:limit]
        return list(self._marked(lines)), offset + sum(map(len, lines)) + len(lines)

    def _marked(self, lines: list[bytes]) -> Iterator[LogRecord]:
        """The records of some lines, with one that says so in the place of those that are damaged."""
        damaged, before = 0, None
        for line in lines:
            record = _parsed(line)
            if record is None:
                damaged += 1
                continue
            if damaged:
                yield self._mark(damaged, record)
            damaged, before = 0, record
            yield record
        if damaged:
            yield self._mark(damaged, before)

    def _mark(self, damaged: int, beside: LogRecord | None) -> LogRecord:
        """What stands in the place of damaged lines; its time is that of a record beside them, or of the file."""
        # Only whole records are appended, so a disk or a power cut did this; what is left is still worth reading.
        lines = "1 line is" if damaged == 1 else f"{damaged} lines are"
        text = f"[muster] {lines} damaged on the coordinator's disk and cannot be shown here"
        time_ns = os.fstat(self.fd).st_mtime_ns if beside is None else beside.time_ns
        return LogRecord(time_ns=time_ns, stream=Stream.STDERR, text=text.encode(), marker=True)

    def at_time(self, time_ns: int) -> int:
        """Where the first line that is not older begins; the times of the file must rise."""
        low, high = 0, self.end
        while low < high:
            middle = (low + high) // 2
            start = self._line_from(middle)
            if start >= self.end or self._time(start) >= time_ns:
                high = middle
            else:
                low = start + 1
        return self._line_from(low)

    def tail(self, count: int) -> int:
        """Where the last `count` lines of output begin, with the pieces that they consist of."""
        unfinished = set(Stream)
        for end, line in self._backwards():
            record = _parsed(line)
            if record is None:
                continue
            if not record.partial or record.stream in unfinished:
                count -= 1
            if count < 0:
                return end
            unfinished.discard(record.stream)
        return 0

    def _backwards(self) -> Iterator[tuple[int, bytes]]:
        """Every line with the offset of its end, the last one first."""
        start = end = self.end
        rest = b""
        while start:
            size = min(LOOK_BACK_BYTES, start)
            start -= size
            first, *lines, _ = (os.pread(self.fd, size, start) + rest).split(b"\n")
            for line in reversed(lines):
                yield end, line
                end -= len(line) + 1
            rest = first + b"\n"
        if rest:
            yield end, rest[:-1]

    def _line_from(self, offset: int) -> int:
        """The beginning of the first line at or after `offset`."""
        while 0 < offset < self.end:
            newline = os.pread(self.fd, MAX_LINE, offset - 1).find(b"\n")
            if newline >= 0:
                return offset + newline
            offset += MAX_LINE
        return min(offset, self.end)

    def _time(self, start: int) -> int:
        try:
            return parse_time(os.pread(self.fd, _TIME, start))
        except ValueError:
            return 0


def damaged_lines(log: StoredLogFile) -> int:
    """How many lines of a log are no records."""
    damaged = offset = 0
    while offset < log.end:
        block = os.pread(log.fd, min(MAX_BATCH, log.end - offset), offset)
        block = block[: block.rfind(b"\n") + 1] or block
        if not _CHUNK.fullmatch(block):
            damaged += sum(_parsed(line) is None for line in block.removesuffix(b"\n").split(b"\n"))
        offset += len(block)
    return damaged


def _parsed(line: bytes) -> LogRecord | None:
    try:
        return parse_record(line)
    except ValueError:
        return None
