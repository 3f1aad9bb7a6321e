"""Lines of a log, read back from its file: from any place on, or from the end backwards."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muster.domain.gangs.log import MAX_LINE, LogRecord, Stream, parse_record

READ_BACK_BYTES = 1 << 20
"""Bytes read at once on the way back from the end of the file."""

TAIL_WINDOW = 256 * 1024
"""Bytes from which the last lines are taken; enough for a stack trace, little enough for a message."""

MAX_TAIL_LINE = 2048
"""Characters that are given of one of the last lines."""

_STREAM_FIELD = slice(31, 37)


class LogLines(NamedTuple):
    """What lies in a log file before a certain place."""

    file: int
    """The descriptor of the file."""
    size: int

    def whole(self, offset: int, limit: int) -> bytes:
        """Whole lines from `offset`, `limit` bytes of them at most but at least one; empty at the end."""
        data = self._bytes(offset, limit)
        end = data.rfind(b"\n") + 1
        if end == 0 and data:
            data = self._bytes(offset, max(limit, MAX_LINE))
            end = data.find(b"\n") + 1
        return data[:end]

    def last(self, count: int) -> tuple[str, ...]:
        """The last lines of both streams, decoded, pieces joined and very long ones cut."""
        start = max(0, self.size - TAIL_WINDOW)
        window = self._bytes(start, TAIL_WINDOW)
        if start:
            window = window[window.find(b"\n") + 1 :]
        return tuple(map(_readable, tuple(_joined(window.split(b"\n")[:-1]))[-count:])) if count > 0 else ()

    def end(self) -> int:
        """Where the last whole line ends."""
        end = self.size
        for start, block in self._blocks():
            newline = block.rfind(b"\n")
            end = start + newline + 1
            if newline >= 0:
                break
        return end

    def last_record(self) -> LogRecord | None:
        """The last record; None where there is none, or it is damaged."""
        window = self._bytes(max(0, self.size - MAX_LINE), MAX_LINE)
        return _parsed(window.rstrip(b"\n").rpartition(b"\n")[2])

    def resume_points(self) -> dict[Stream, tuple[int, int]]:
        """When the last record of each stream was printed, and how many of its last records share that time."""
        points = dict.fromkeys(Stream, (0, 0))
        wanted = {stream.encode(): stream for stream in Stream}
        for line in self._backwards():
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

    def _bytes(self, offset: int, limit: int) -> bytes:
        return os.pread(self.file, max(0, min(limit, self.size - offset)), offset)

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Offset and content of the file's blocks, from the last to the first."""
        end = self.size
        while end > 0:
            start = max(0, end - READ_BACK_BYTES)
            yield start, self._bytes(start, end - start)
            end = start

    def _backwards(self) -> Iterator[bytes]:
        rest = b""
        for _, block in self._blocks():
            first, *lines = (block + rest).split(b"\n")
            yield from reversed(lines)
            rest = first[:MAX_LINE]  # longer only where the file is damaged
        yield rest


def _readable(line: str) -> str:
    return line if len(line) <= MAX_TAIL_LINE else line[:MAX_TAIL_LINE] + "…"


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
