"""The log of one execution on its node: an append-only file of CRI log lines.

Format, one record a line (Kubernetes' CRI logging format):

    2026-11-21T08:48:50.123456789Z stdout F text of the line
    2026-11-21T08:48:50.123456790Z stderr P a piece of a long line

`F` ends a line of output, `P` means that the line goes on in the next record of that stream. The coordinator keeps a
copy of the same bytes, so a byte offset means the same at both ends.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Stream(StrEnum):
    """Where user code printed to."""

    STDOUT = "stdout"
    STDERR = "stderr"


MAX_RECORD = 16 * 1024
"""Longest text of one record in bytes; longer lines are split (Docker splits at the same length)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One piece of output."""

    time_ns: int
    """Nanoseconds since 1970."""
    stream: Stream
    text: bytes
    """Without the line end; never contains one."""
    partial: bool = False


class LogSpool:
    """Appends records to the log of one execution, and reads its bytes back for the coordinator."""

    def __init__(self, path: Path) -> None:
        self._path = path
