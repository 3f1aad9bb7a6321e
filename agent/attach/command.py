"""A command that the companion has started, as its agent sees it: pipes or a terminal, and how it ended."""

import asyncio
import fcntl
import os
import signal
import stat
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from agent.attach.line import LineTurns, close_all, ready
from agent.core.door.packets import LARGEST_DATA, DoorError, GangErrorOutput, GangExit, GangOutput

LINGERING_OUTPUT = 2.0
"""Seconds for which output is waited for after the end, where something that the command left running has it open."""

HANG_UP_AFTER = 2.0
"""Seconds that a command without a terminal has to end by itself once it has lost what it reads and writes."""

LOST_CODE = 255
"""Exit code of a command whose companion is gone."""


OutputKind: TypeAlias = type[GangOutput | GangErrorOutput]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStreams:
    """The descriptors by which a command is reached; who has them closes them."""

    input: int | None = None
    """What is written there, the command reads."""
    terminal: int | None = None
    """The terminal whose size is the command's."""
    outputs: Mapping[int, OutputKind] = field(default_factory=dict)
    """What is read there, the command prints."""

    @classmethod
    def of_command(cls, descriptors: Sequence[int], *, has_input: bool, terminal: bool) -> "CommandStreams":
        """Descriptors that a companion hands over: a terminal, or pipes, that of the input first."""
        if terminal:
            return cls(input=descriptors[0], terminal=descriptors[0], outputs={descriptors[0]: GangOutput})
        output, error_output = descriptors[-2:]
        outputs: Mapping[int, OutputKind] = {output: GangOutput, error_output: GangErrorOutput}
        return cls(input=descriptors[0] if has_input else None, outputs=outputs)

    @property
    def all(self) -> list[int]:
        """Each of them once."""
        given = (self.input, self.terminal, *self.outputs)
        return list(dict.fromkeys(each for each in given if each is not None))


class AttachedCommand:
    """A command that runs, or has run; one task reads and another one may write."""

    def __init__(
        self, pid: int, streams: CommandStreams, *, signal: Callable[[int], None], largest: int = LARGEST_DATA
    ) -> None:
        self.pid = pid
        """The number that the companion knows it by."""
        self.signal = signal
        """Send a signal to the group of the command; harmless after its end."""
        self.is_lost = False
        """Whether its companion is gone, so that nobody knows how it ends."""
        self._all = streams.all
        self._input = streams.input
        self._terminal = streams.terminal
        self._largest = largest
        self._outputs = dict(streams.outputs)
        self._reading = LineTurns()
        self._writing = LineTurns()
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if streams.terminal is None and largest > LARGEST_DATA:
            _widen(self._all, largest)

    @property
    def has_terminal(self) -> bool:
        """Whether it has a terminal, whose input never ends."""
        return self._terminal is not None

    @property
    def takes_input(self) -> bool:
        """Whether it may be given input; not once that has ended."""
        return self._input is not None

    async def read(self) -> GangOutput | GangErrorOutput | GangExit:
        """The next piece of output, or last of all how it ended. Nothing is read before it is asked for."""
        while self._outputs:
            for descriptor in tuple(self._outputs):
                piece = self._piece(descriptor)
                if piece is not None:
                    await self._reading.count(len(piece.data))
                    return piece
            if self._outputs and not await self._something():
                break
            self._reading.begin()
        return GangExit(code=await asyncio.shield(self._exit))

    async def write(self, data: bytes) -> None:
        """Give it input; waits while it does not read. What reads no more gets nothing."""
        view = memoryview(data)
        while view and self._input is not None:
            try:
                written = os.write(self._input, view)
            except BlockingIOError:
                await ready(self._input, asyncio.get_running_loop().add_writer)
                self._writing.begin()
            except OSError:
                self.end_input()
            else:
                view = view[written:]
                await self._writing.count(written)

    def end_input(self) -> None:
        """Let it find the end of its input; a terminal has none."""
        if self._input is not None and self._terminal is None:
            self._all.remove(self._input)
            os.close(self._input)
        self._input = None

    def resize(self, rows: int, columns: int) -> None:
        """Give its terminal another size, of which it hears by a signal; one without a terminal hears nothing."""
        if self._terminal is not None:
            with suppress(OSError):
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ended(self, code: int) -> None:
        """The companion tells how it ended, or is gone."""
        if not self._exit.done():
            self._exit.set_result(code)

    def lost(self) -> None:
        """The companion is gone before it has told how the command ended."""
        self.is_lost = not self._exit.done()
        self.ended(LOST_CODE)

    def close(self) -> None:
        """Let go of it: a command that still runs loses what it reads and writes.

        Whoever reads or writes must have been cancelled before, or be the one who does it.
        """
        self._outputs.clear()
        self._input = self._terminal = None
        close_all(self._all)

    def hang_up(self) -> None:
        """Let go of it, and have what then still runs of it hear SIGHUP; what has ended hears nothing.

        With a terminal it hears that at once. Otherwise it first finds the end of its input, as with sshd. So a shell
        that waits for more of a script ends, and what it has started in the background goes on: servers of editors are
        started like that.
        """
        if self._terminal is None:
            asyncio.get_running_loop().call_later(HANG_UP_AFTER, self._hear_of_it)
        else:
            self.signal(signal.SIGHUP)
        self.close()

    def _hear_of_it(self) -> None:
        if not self._exit.done():
            self.signal(signal.SIGHUP)

    def _piece(self, descriptor: int) -> GangOutput | GangErrorOutput | None:
        """What there is of one stream; None: nothing now, or nothing any more."""
        pieces: list[bytes] = []
        size = 0
        while size < self._largest:
            try:
                data = os.read(descriptor, self._largest - size)
            except BlockingIOError:
                break
            except OSError:  # how a terminal ends
                data = b""
            if not data and not pieces:
                del self._outputs[descriptor]
            if not data:
                break
            pieces.append(data)
            size += len(data)
            if self._terminal is None:  # a pipe gives all that it has; a terminal gives 4 KiB at a time
                break
        return self._outputs[descriptor](data=pieces[0] if len(pieces) == 1 else b"".join(pieces)) if pieces else None

    async def _something(self) -> bool:
        """Wait for output; False: the command ended some time ago, and there is none."""
        loop = asyncio.get_running_loop()
        outputs = tuple(self._outputs)
        found: asyncio.Future[bool] = loop.create_future()

        def exited(_: "asyncio.Future[int]") -> None:
            _settle(found, is_there=False)

        self._exit.add_done_callback(exited)
        for each in outputs:
            loop.add_reader(each, lambda: _settle(found, is_there=True))
        try:
            if await found:
                return True
            later: asyncio.Future[bool] = loop.create_future()
            for each in outputs:
                loop.add_reader(each, lambda: _settle(later, is_there=True))
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGERING_OUTPUT):
                    return await later
            return False
        finally:
            self._exit.remove_done_callback(exited)
            for each in outputs:
                loop.remove_reader(each)


def _settle(found: "asyncio.Future[bool]", *, is_there: bool) -> None:
    if not found.done():
        found.set_result(is_there)


def _widen(pipes: list[int], size: int) -> None:
    """Let pipes hold as much as is read at once, where the system has that to spare."""
    for each in pipes:
        with suppress(OSError):
            fcntl.fcntl(each, fcntl.F_SETPIPE_SZ, size)


def checked(descriptors: list[int], *, has_input: bool, terminal: bool) -> None:
    """Refuse descriptors that are no pipes, or no terminal: reading others might take for ever. Raises DoorError."""
    wanted = 1 if terminal else 2 + has_input
    sound = len(descriptors) == wanted and all(
        os.isatty(each) if terminal else stat.S_ISFIFO(os.fstat(each).st_mode) for each in descriptors
    )
    if not sound:
        close_all(descriptors)
        raise DoorError("what came with a command are not its pipes, or not its terminal")
    for each in descriptors:
        with suppress(OSError):
            os.set_blocking(each, False)
