"""The terminal of this machine while a program elsewhere has it: raw, and with its size told on."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from muster.domain.attachments.request import LARGEST_TERMINAL, TerminalSize


def has_terminal() -> bool:
    """Whether somebody types here and sees what is printed."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def terminal_size() -> TerminalSize:
    """The size of the terminal of this program; 24 rows of 80 columns where it says none."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return TerminalSize(rows=24, columns=80)
    return TerminalSize(
        rows=min(max(size.lines, 1), LARGEST_TERMINAL), columns=min(max(size.columns, 1), LARGEST_TERMINAL)
    )


@contextmanager
def raw_terminal() -> Iterator[None]:
    """Every key goes to the program, Ctrl-C too; afterwards the terminal is as it was."""
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        tty.setraw(number, termios.TCSANOW)
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


@contextmanager
def resizing(told: Callable[[], None]) -> Iterator[None]:
    """Call `told` whenever the terminal has another size."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, told)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
