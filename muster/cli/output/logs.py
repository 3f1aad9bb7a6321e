"""Log lines as bytes for the terminal or a file; what user code printed goes into files as it is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from muster.domain.jobs.view import LogLine
from muster.domain.visible_text import visible_line

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_LONGEST = 2**20
"""Bytes after which a line without an end is shown as it is."""

_SHOWN_OF_BEGUN = 4096
"""Bytes of a begun line that are looked at for what it shows."""

# Only these sequences pass: a log must not be able to move the cursor, retitle the window or answer for the user.
_COLOUR = re.compile(rb"(\x1b\[[0-9;:]*m)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStyle:
    """How lines are shown."""

    prefix: bool = True
    """Rank in front of each line, and whether it came from stderr."""
    timestamps: bool = False
    colour: bool = False
    terminal: bool = False
    """Somebody looks at it: control characters are shown, not obeyed."""
    width: int = 1
    """Digits of the highest rank."""


class LineJoiner:
    """Joins the pieces of long lines, per rank and stream."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], LogLine] = {}

    def add(self, piece: LogLine) -> LogLine | None:
        """The whole line, once its last piece is there."""
        key = (piece.rank, piece.stream)
        begun = self._open.pop(key, None)
        line = piece if begun is None else replace(begun, text=begun.text + piece.text, partial=piece.partial)
        if line.partial and len(line.text) < _LONGEST:
            self._open[key] = line
            return None
        return line

    @property
    def begun(self) -> tuple[LogLine, ...]:
        """The lines whose end has not come yet, by rank."""
        return tuple(self._open[key] for key in sorted(self._open))

    def rest(self) -> Iterator[LogLine]:
        """The lines whose end never came."""
        while self._open:
            yield self._open.pop(next(iter(self._open)))


def log_bytes(line: LogLine, style: LogStyle) -> bytes:
    """One line of output, with its line end."""
    parts = []
    if style.timestamps:
        parts.append(_moment(line.time) + b" ")
    if style.prefix:
        parts.append(_prefix(line, style))
    parts.append(_shown(line.text, style) if style.terminal else line.text)
    return b"".join(parts) + b"\n"


def begun_text(line: LogLine, style: LogStyle) -> str:
    """What a begun line shows so far, without colours; of one that rewrites itself, the last state."""
    plain = replace(style, colour=False, terminal=True)
    return log_bytes(replace(line, text=line.text[-_SHOWN_OF_BEGUN:]), plain).decode().rstrip("\n")


def _prefix(line: LogLine, style: LogStyle) -> bytes:
    rank = f"{line.rank}".rjust(style.width)
    if not style.colour:
        return f"[{rank}]{'!' if line.stream == 'stderr' else ''} ".encode()
    mark = "\x1b[31m!\x1b[0m" if line.stream == "stderr" else ""
    return f"\x1b[{_COLOURS[line.rank % len(_COLOURS)]}m[{rank}]\x1b[0m{mark} ".encode()


def _shown(text: bytes, style: LogStyle) -> bytes:
    # Of a progress bar that rewrites its line, what would be left standing.
    standing = text.rstrip(b"\r").rpartition(b"\r")[2]
    parts = _COLOUR.split(standing)
    parts[::2] = (visible_line(text).encode() for text in parts[::2])
    if not style.colour:
        del parts[1::2]
    elif len(parts) > 1:
        parts.append(b"\x1b[0m")
    return b"".join(parts)


def _moment(at: datetime) -> bytes:
    """Local time with its offset."""
    return at.astimezone().isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
