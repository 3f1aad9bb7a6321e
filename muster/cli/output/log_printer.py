"""Writes log lines to stdout."""

import sys
from types import TracebackType
from typing import Self

from muster.cli.output.logs import LineJoiner, LogStyle, begun_text, log_bytes
from muster.cli.output.screen import clear_status, colour_wanted, say
from muster.domain.jobs.view import JobView, LogLine


def style_for(job: JobView, *, prefix: bool = True, timestamps: bool = False, raw: bool = False) -> LogStyle:
    """How the lines of a job look on this stdout; `raw`: also on a terminal as they were printed."""
    return LogStyle(
        prefix=prefix,
        timestamps=timestamps,
        colour=colour_wanted(),
        terminal=sys.stdout.isatty() and not raw,
        width=len(str(job.spec.size - 1)),
    )


MOST_OPEN_LINES = 8
"""Begun lines that are shown at once: those of the lowest ranks."""


class LogPrinter:
    """Prints whole lines as they come, and at the end of its `with` block those whose end never came."""

    def __init__(self, style: LogStyle) -> None:
        self._style = style
        self._joiner = LineJoiner()
        self._out = sys.stdout.buffer
        self._attempt: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._finish()

    def print(self, piece: LogLine) -> None:
        """Print the line if it is whole now; between two attempts, say that another one begins."""
        if self._attempt not in {None, piece.attempt}:
            self._finish()
            say(f"-- attempt {piece.attempt}", err=True, flush=True)
        self._attempt = piece.attempt
        line = self._joiner.add(piece)
        if line is not None:
            clear_status()
            self._out.write(log_bytes(line, self._style))
            # A line that waits in a buffer is of no use to whoever follows.
            self._out.flush()

    def open_lines(self) -> tuple[str, ...]:
        """What the lines that have no end yet show so far, as progress bars do."""
        if not self._style.terminal:
            return ()
        return tuple(begun_text(line, self._style) for line in self._joiner.begun[:MOST_OPEN_LINES])

    def _finish(self) -> None:
        clear_status()
        for line in self._joiner.rest():
            self._out.write(log_bytes(line, self._style))
        self._out.flush()
