"""The one way from the command line to a terminal, a file or a pipe: no text of others acts on its way.

No other module here prints or makes a console; a test of the house sees to it.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from muster.domain.quantity import size_text
from muster.domain.visible_text import visible

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 4000
"""Columns where nobody looks: tables are never cut on their way into a file or another program."""


class _Status:
    """The last lines of the terminal, which say how things stand until something else is printed."""

    drawn: Sequence[str] = ()


_STATUS = _Status()


def is_terminal() -> bool:
    """Whether both outputs are terminals, so that somebody sees a status and no file gets it."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def draw_status(*lines: str) -> None:
    """Say how things stand in the last lines of the terminal; nothing where stdout or stderr is none."""
    if not is_terminal():
        return
    columns, rows = os.get_terminal_size(sys.stderr.fileno())
    shown = [_fitting(visible(line), max(0, columns - 1)) for line in lines[-max(1, rows - 1) :]]
    if shown == _STATUS.drawn:
        return
    text = "\n".join(f"\x1b[2m{line}\x1b[0m" for line in shown)
    print(f"{_erasing()}\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)
    _STATUS.drawn = shown


def draw_share(doing: str, done: int, total: int) -> None:
    """Say in the last line of the terminal how much of how many bytes is there: `sending: 3 MiB of 9 MiB (33 %)`."""
    share = f" ({100 * done // total} %)" if total else ""
    draw_status(f"{doing}: {size_text(done)} of {size_text(total)}{share}")


def clear_status() -> None:
    """Take the status away, before something else is printed there."""
    if _STATUS.drawn:
        print(f"{_erasing()}\r\x1b[2K", end="", file=sys.stderr, flush=True)
        _STATUS.drawn = ()


def _erasing() -> str:
    """What takes away all drawn lines but the first, and leaves the cursor there."""
    return "\r\x1b[2K\x1b[A" * (len(_STATUS.drawn) - 1)


def _fitting(text: str, width: int) -> str:
    """The beginning of a line that fits."""
    shown = text[:width]
    while _columns(shown) > width:
        shown = shown[:-1]
    return shown


def say(text: str, *, err: bool = False, flush: bool = False) -> None:
    """Print one line on stdout, or on stderr with `err`: no text in it can begin another line."""
    clear_status()
    print(visible(text), file=_stream(err=err), flush=flush)


def say_lines(text: str, *, err: bool = False, flush: bool = False) -> None:
    """Print whole lines, with their ends; what others wrote has no ends of lines in it, or they are no harm."""
    clear_status()
    print(visible(text, lines=True), end="", file=_stream(err=err), flush=flush)


def pass_bytes(data: bytes, *, err: bool = False) -> None:
    """Pass on what a program elsewhere prints, byte by byte, for whoever has asked for just that: as ssh does."""
    stream = _stream(err=err)
    stream.flush()
    left = memoryview(data)
    while left:
        left = left[os.write(stream.fileno(), left) :]


def screen(*, err: bool = False, whole: bool = False) -> "Console":
    """Where tables and notes go: as wide as the terminal, or as wide as needed where there is none, or with `whole`."""
    from muster.cli.output.plain.console import PlainConsole

    clear_status()
    stream = _stream(err=err)
    return PlainConsole(stream, None if stream.isatty() and not whole else PIPE_WIDTH)


def print_dim(text: str) -> None:
    """A note on stderr that matters less than what was asked for."""
    if is_drawn(sys.stderr):
        screen(err=True).print(visible(text), style="dim")
    else:
        say(text, err=True)


def is_drawn(stream: TextIO) -> bool:
    """Whether Rich may do more with a text on its way there than to pass it on."""
    return stream.isatty() or any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))


def colour_wanted() -> bool:
    """Whether output written past Rich may be coloured."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _columns(text: str) -> int:
    """Columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(each) in {"W", "F"} else 1 for each in text)


def _stream(*, err: bool) -> TextIO:
    return sys.stderr if err else sys.stdout
