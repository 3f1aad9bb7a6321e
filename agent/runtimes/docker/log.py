"""Reads the bytes in which Docker hands out a container's output, and goes on exactly where an earlier reader ended.

The body is a row of frames: stream number, three zero bytes, length (4 bytes, big endian), then as many bytes

    2026-11-21T08:48:50.123456789Z text

with its line end. Longer lines come in pieces of 16 KiB without one; the last piece is shorter, and old engines forget
its line end. Only one stream is asked for at a time: times are in order within a stream, but not across both.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from muster.domain.gangs.log import MAX_RECORD, LogRecord, Stream, parse_time

_HEADER = struct.Struct(">BxxxL")
_TIME = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")
_USUAL_TIME = 30
"""Bytes of a time in UTC with nanoseconds."""


class NotALogError(ValueError):
    """The bytes are not what Docker sends as a log."""


class FrameParser:
    """Turns the body, in chunks as they come in, into records of one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[LogRecord]:
        """The records that are complete with this chunk; raises NotALogError."""
        data = self._rest + chunk
        start = 0
        while len(data) - start >= _HEADER.size:
            number, length = _HEADER.unpack_from(data, start)
            if number not in (1, 2):
                raise NotALogError(f"frame of stream {number}; 1 and 2 are possible")
            end = start + _HEADER.size + length
            if end > len(data):
                break
            yield self._record(data[start + _HEADER.size : end])
            start = end
        self._rest = data[start:]

    def _record(self, frame: bytes) -> LogRecord:
        time_ns, text = _split_time(frame)
        partial = len(text) >= MAX_RECORD and not text.endswith(b"\n")
        return LogRecord(time_ns=time_ns, stream=self._stream, text=text.removesuffix(b"\n"), partial=partial)


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a stream has been read: the time of the last record, and how many records with that time."""

    time_ns: int = 0
    count: int = 0

    @property
    def since(self) -> str | None:
        """What to ask Docker for: it repeats what has this time. A string, because a float has no nanoseconds."""
        if not self.count:
            return None
        seconds, nanoseconds = divmod(self.time_ns, 1_000_000_000)
        return f"{seconds}.{nanoseconds:09d}"


class Resumption:
    """Drops from a new reading what an earlier one has already seen.

    Times that run backwards later in the same reading are kept: that is a clock that was set back.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._seen = cursor
        self._to_skip = cursor.count
        self._first = bool(cursor.count)
        self.cursor = cursor
        """Where the next reading goes on."""
        self.gap = False
        """Whether the last record that was seen is no longer there, so that some after it may be missing too."""

    def is_new(self, record: LogRecord) -> bool:
        """Whether the record comes after the cursor; tells of each record once, in their order."""
        if self._first:
            if record.time_ns < self._seen.time_ns:
                return False  # replayed from an older file
            self._first = False
            if record.time_ns != self._seen.time_ns:
                self.gap = True
        if self._to_skip and record.time_ns == self._seen.time_ns:
            self._to_skip -= 1
            return False
        self._to_skip = 0
        same = record.time_ns == self.cursor.time_ns
        self.cursor = Cursor(record.time_ns, self.cursor.count + 1 if same else 1)
        return True


def _split_time(frame: bytes) -> tuple[int, bytes]:
    """The fast way for what Docker writes in UTC, the slow one for a daemon in another time zone."""
    if frame[_USUAL_TIME - 1 : _USUAL_TIME + 1] == b"Z ":
        return parse_time(frame[:_USUAL_TIME]), frame[_USUAL_TIME + 1 :]
    found = _TIME.match(frame)
    if found is None:
        raise NotALogError(f"no time at the start of {frame[:40]!r}")
    second, fraction, zone = found.groups(b"")
    moment = datetime.fromisoformat(f"{second.decode()}{zone.decode().replace('Z', '+00:00')}")
    return int(moment.timestamp()) * 1_000_000_000 + int(fraction.ljust(9, b"0") or 0), frame[found.end() :]
