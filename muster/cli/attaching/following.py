"""One command or shell of an execution, joined with the standard streams of this program."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from muster.cli.attaching.escapes import Escape, EscapeReader, escapes_explained
from muster.cli.attaching.standard_input import StandardInput
from muster.cli.attaching.terminal import raw_terminal, resizing, terminal_size
from muster.cli.output.screen import pass_bytes, say_lines
from muster.client.attachments.finished import error_of_end
from muster.client.attachments.stream import AttachmentStream
from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOutput,
    AttachmentSignal,
    AttachmentSize,
)
from muster.domain.visible_text import visible

END_KEY = b"\x04"
"""What a terminal takes for the end of its input: Ctrl-D."""

LEFT_CODE = 130
"""Exit code of a command line that has left what goes on."""

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


async def joined(stream: AttachmentStream, *, terminal: bool, has_input: bool, leaves: bool = False) -> int:
    """Join the standard streams with a command; its exit code. Raises MusterError where the attachment broke.

    With a terminal every key goes there; otherwise signals of this program are passed on, and a second one leaves.
    With `leaves` signals are not passed on: the first one leaves, and what runs there goes on.
    """
    with ExitStack() as stack:
        if terminal:
            stack.enter_context(raw_terminal())
        return await _joined(stream, terminal=terminal, has_input=has_input, leaves=leaves)


async def fed(stream: AttachmentStream, end: bytes = b"") -> None:
    """Send what comes on standard input, and then the end of it; `end` is what a terminal takes for that."""
    given = StandardInput()
    while data := await given.read():
        await stream.send(AttachmentInput(data=data))
    await stream.send(AttachmentInput(data=end) if end else AttachmentInputEnd())


async def _joined(stream: AttachmentStream, *, terminal: bool, has_input: bool, leaves: bool) -> int:
    left = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        beside: list[asyncio.Task[None]] = []
        if has_input:
            feed = _typed(stream, left, goes_on=leaves) if terminal else fed(stream, END_KEY if leaves else b"")
            beside.append(tasks.create_task(feed, name="standard input"))

        def resized() -> None:
            tasks.create_task(stream.send(AttachmentSize(size=terminal_size())), name="size of the terminal")

        def signalled(number: int) -> None:
            tasks.create_task(stream.send(AttachmentSignal(number=number)), name="signal")

        with _resized_or_left(resized, left.set) if terminal else _signals(signalled, left.set, leaves=leaves):
            printing = tasks.create_task(_printed(stream), name="output")
            leaving = tasks.create_task(_until(left), name="leave")
            await asyncio.wait((printing, leaving), return_when=asyncio.FIRST_COMPLETED)
        for each in (*beside, leaving):
            each.cancel()
        if not printing.done():
            printing.cancel()
    if printing.cancelled():
        return LEFT_CODE
    ended = printing.result()
    error = error_of_end(ended)
    if error is not None:
        raise error
    if ended.text:
        say_lines(f"{ended.text}\n", err=True)
    return ended.code


async def _until(event: asyncio.Event) -> None:
    await event.wait()


async def _printed(stream: AttachmentStream) -> AttachmentEnded:
    while True:
        match await stream.receive():
            case AttachmentOutput(data=data):
                await asyncio.to_thread(pass_bytes, data)
            case AttachmentErrorOutput(data=data):
                await asyncio.to_thread(pass_bytes, data, err=True)
            case AttachmentEnded() as ended:
                return ended


async def _typed(stream: AttachmentStream, left: asyncio.Event, *, goes_on: bool) -> None:
    given, reader = StandardInput(), EscapeReader()
    while data := await given.read():
        typed = reader.read(data)
        if typed.passed:
            await stream.send(AttachmentInput(data=typed.passed))
        for escape in typed.escapes:
            if escape is Escape.LEAVE:
                left.set()
                return
            pass_bytes("".join(f"\r\n{line}" for line in (*escapes_explained(goes_on=goes_on), "")).encode(), err=True)
    left.set()  # the terminal is gone


@contextmanager
def _signals(tell: Callable[[int], None], leave: Callable[[], None], *, leaves: bool) -> Iterator[None]:
    """Pass signals on; a second Ctrl-C leaves. With `leaves` the first signal does."""
    loop, interrupts = asyncio.get_running_loop(), 0

    def heard(number: int) -> None:
        nonlocal interrupts
        interrupts += number == signal.SIGINT
        if leaves or interrupts > 1:
            leave()
        else:
            tell(number)

    for number in _PASSED_ON:
        loop.add_signal_handler(number, heard, number)
    try:
        yield
    finally:
        for number in _PASSED_ON:
            loop.remove_signal_handler(number)


@contextmanager
def _resized_or_left(resized: Callable[[], None], leave: Callable[[], None]) -> Iterator[None]:
    """Tell of another size of the terminal; hang up where that is gone, or this program is told to end."""
    loop = asyncio.get_running_loop()
    with resizing(resized):
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, leave)
        try:
            yield
        finally:
            for number in (signal.SIGHUP, signal.SIGTERM):
                loop.remove_signal_handler(number)


class BreakNotice:
    """Tells on stderr that the connection is interrupted, once each time, and that it is back."""

    def __init__(self, minutes: float) -> None:
        self._minutes = minutes
        self._told = False

    def __call__(self, cause: str) -> None:
        """Take in why there is no connection; an empty text: there is one again."""
        if bool(cause) == self._told or not sys.stderr.isatty():
            return
        self._told = bool(cause)
        words = f"the connection is interrupted; trying for {self._minutes:g} min" if cause else "connected again"
        pass_bytes(f"\r\n[muster: {words}]\r\n".encode(), err=True)


def tell_notice(text: str) -> None:
    """Tell on stderr what concerns all who are attached; also where the terminal is raw."""
    end = "\r\n" if sys.stderr.isatty() else "\n"
    before = end if sys.stderr.isatty() else ""
    pass_bytes(f"{before}[muster: {visible(text)}]{end}".encode(), err=True)


class NoticeOnce:
    """Tells the same notice of several attachments once."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, text: str) -> None:
        """Take in a notice of one of them."""
        if text != self._last:
            self._last = text
            tell_notice(text)
