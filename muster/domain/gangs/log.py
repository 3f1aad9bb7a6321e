"""The log of one execution, as bytes: one record a line, in Kubernetes' CRI logging format.

    2026-11-21T08:48:50.123456789Z stdout F text of the line
    2026-11-21T08:48:50.123456790Z stderr P a piece of a long line
    2026-11-21T08:48:51.000000000Z stderr F:muster [muster] something that Muster says about the log itself

`F` ends a line of output, `P` means that the line goes on in the next record of that stream. Agent and coordinator
keep the same bytes, so a byte offset means the same at both ends.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache


class Stream(StrEnum):
    """Where user code printed to."""

    STDOUT = "stdout"
    STDERR = "stderr"


MAX_RECORD = 16 * 1024
"""Longest text of one record in bytes; longer lines are split (Docker splits at the same length)."""

MAX_LINE = MAX_RECORD + 64
"""Longest record as a line of the file, with time, stream, tag and line end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One piece of output."""

    time_ns: int
    """Nanoseconds since 1970."""
    stream: Stream
    text: bytes
    """Without the line end; never contains one."""
    partial: bool = False
    """Whether the line goes on in the next record of this stream."""
    marker: bool = False
    """Whether Muster wrote it, about the log itself; user code printed no such line."""


def format_record(record: LogRecord) -> bytes:
    """The record as one line of the file, with its line end."""
    if b"\n" in record.text:
        raise ValueError("the text of a record must not contain a line end; split it with LineSplitter")
    seconds, nanoseconds = divmod(record.time_ns, 1_000_000_000)
    tag = (b"P" if record.partial else b"F") + (b":muster" if record.marker else b"")
    return b"%b.%09dZ %b %b %b\n" % (_second(seconds), nanoseconds, _STREAM[record.stream], tag, record.text)


def parse_record(line: bytes) -> LogRecord:
    """The record of one line, with or without its line end; raises ValueError with the reason."""
    time, stream, tag, text = (line.removesuffix(b"\n").split(b" ", 3) + [b""] * 3)[:4]
    time_ns = parse_time(time)
    known = _STREAM_OF.get(stream)
    if known is None:
        raise ValueError(f"{stream[:20]!r} is neither stdout nor stderr")
    kind, _, label = tag.partition(b":")
    if kind not in {b"F", b"P"}:
        raise ValueError(f"{tag[:20]!r} is neither F (full) nor P (partial)")
    return LogRecord(time_ns=time_ns, stream=known, text=text, partial=kind == b"P", marker=label == b"muster")


def parse_records(lines: bytes) -> list[LogRecord]:
    """The records of whole lines; only the line feed ends one, unlike for `splitlines`."""
    return [parse_record(line) for line in lines.removesuffix(b"\n").split(b"\n")] if lines else []


def parse_time(text: bytes) -> int:
    """Nanoseconds since 1970 of `2026-11-21T08:48:50.123456789Z`; raises ValueError for anything else."""
    fraction = text[20:29]
    if len(text) != _TIME_LENGTH or text[19:20] != b"." or text[29:] != b"Z" or not fraction.isdigit():
        raise ValueError(f"{text[:40]!r} is no time in UTC with nanoseconds, like 2026-11-21T08:48:50.123456789Z")
    return _parsed_second(text[:19]) * 1_000_000_000 + int(fraction)


class LineSplitter:
    """Turns what user code prints to one stream, as it comes in, into records.

    The records are the same however the bytes were cut into chunks, apart from their times and from what `piece` took.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rest = b""
        self._is_begun = False
        """Whether a piece of the line was given already."""

    @property
    def is_open(self) -> bool:
        """Whether there is something of a line whose end has not come."""
        return bool(self._rest)

    def feed(self, chunk: bytes, time_ns: int) -> list[LogRecord]:
        """The records that are complete now; the rest of the last line waits for the next chunk."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        records: list[LogRecord] = []
        for line in lines:
            records += self._pieces(line, time_ns)
            self._is_begun = False
        if len(self._rest) > MAX_RECORD:
            *pieces, last = self._pieces(self._rest, time_ns)
            records += pieces
            self._rest, self._is_begun = last.text, True
        return records

    def piece(self, time_ns: int) -> list[LogRecord]:
        """What there is of the last line, without waiting for its end."""
        if not self._rest:
            return []
        text, self._rest, self._is_begun = self._rest, b"", True
        return [LogRecord(time_ns=time_ns, stream=self._stream, text=text, partial=True)]

    def flush(self, time_ns: int) -> list[LogRecord]:
        """What is left at the end of the stream: a last line without line end counts as a whole line."""
        rest, self._rest = self._rest, b""
        begun, self._is_begun = self._is_begun, False
        return self._pieces(rest, time_ns) if rest or begun else []

    def _pieces(self, line: bytes, time_ns: int) -> list[LogRecord]:
        if len(line) <= MAX_RECORD:
            return [LogRecord(time_ns=time_ns, stream=self._stream, text=line)]
        return [
            LogRecord(
                time_ns=time_ns,
                stream=self._stream,
                text=line[start : start + MAX_RECORD],
                partial=start + MAX_RECORD < len(line),
            )
            for start in range(0, len(line), MAX_RECORD)
        ]


_STREAM = {stream: stream.encode() for stream in Stream}
_STREAM_OF = {name: stream for stream, name in _STREAM.items()}
_TIME_LENGTH = len("2026-11-21T08:48:50.123456789Z")


@lru_cache(maxsize=16)
def _second(seconds: int) -> bytes:
    """Cached, because thousands of lines share a second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()


@lru_cache(maxsize=16)
def _parsed_second(text: bytes) -> int:
    return int(datetime.strptime(text.decode("ascii"), "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp())
