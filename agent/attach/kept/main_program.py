"""The main program of one execution as its agent sees it: its parent lends the terminal, or the pipe that it reads."""

import asyncio
import os
import stat
from collections.abc import Callable
from contextlib import suppress

from agent.attach.command import LOST_CODE, AttachedCommand, CommandStreams
from agent.attach.kept.attachment import KeptAttachment
from agent.attach.kept.program import KeptProgram
from agent.attach.line import PacketLine, close_all
from agent.core.door.coding import decoded
from agent.core.door.kept_output import KeptOutput
from agent.core.door.packets import (
    DoorError,
    GangExit,
    GangOutput,
    MainInputEnd,
    MainProgramExited,
    MainProgramShown,
    MainSignal,
    ParentOrder,
    Speaker,
)
from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA
from muster.domain.attachments.request import TerminalSize

ONLOOKER_PATIENCE = 1.0
"""Seconds for which a main program waits for people who are attached and do not read; then they miss something."""

PARENT_LIMIT = 10.0
"""Seconds in which the parent of a main program takes an order."""


PARENT_RETURN_LIMIT = 2.5
"""Seconds in which a parent comes to the door of a new agent: it calls every two seconds at the latest."""

NOT_ATTENDED = "nobody can attach to the main program: its job has neither `tty` nor `stdin`, or this is not rank 0"


class MainProgramAwayError(Exception):
    """Nobody can attach to the main program; the sentence says why."""


class MainProgram:
    """One line at a time, of the parent that has come first."""

    def __init__(self) -> None:
        self._place = asyncio.Lock()
        self._there = asyncio.Event()
        """Set while there is one, and when none will come any more."""
        self._over = False
        self._program: KeptProgram | None = None
        self._output = KeptOutput()
        self._saying: set[asyncio.Task[None]] = set()

    async def serve(self, line: PacketLine, shown: MainProgramShown, descriptors: list[int]) -> None:
        """Have it for people to attach to until its parent is gone. Raises DoorError."""
        try:
            async with self._place:
                await self._serve(line, shown, descriptors)
        finally:
            close_all(descriptors)

    async def attach(self, size: TerminalSize | None, limit: float = PARENT_RETURN_LIMIT) -> KeptAttachment:
        """Attach to it, once its parent has come, for which so many seconds are waited; a terminal gets the size.

        Raises MainProgramAwayError.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._there.wait()
        if self._program is None and self._over:
            raise MainProgramAwayError("the execution has ended")
        if self._program is None:
            raise MainProgramAwayError(NOT_ATTENDED)
        command = self._program.command
        if not command.has_terminal and not command.takes_input:
            raise MainProgramAwayError("the input of its main program has ended already")
        if size is not None:
            self._program.redraw(size.rows, size.columns)
        return self._program.attached()

    def end(self) -> None:
        """Know that user code has ended: whoever waits for it hears that it will not come."""
        self._over = True
        self._there.set()

    async def _serve(self, line: PacketLine, shown: MainProgramShown, descriptors: list[int]) -> None:
        streams = _checked(shown, descriptors)

        def say(order: ParentOrder) -> None:
            task = asyncio.get_running_loop().create_task(_said(line, order), name="order for a main program")
            self._saying.add(task)
            task.add_done_callback(self._saying.discard)

        command = MainCommand(shown.pid, streams, say)
        descriptors.clear()  # they are the command's now
        program = self._program = KeptProgram("main program", command, self._output, ONLOOKER_PATIENCE)
        pump = asyncio.get_running_loop().create_task(program.pump(), name="main program")
        self._there.set()
        try:
            await _heard_out(line, command)
            await pump
        finally:
            self._program = None
            if not self._over:
                self._there.clear()
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
            program.ended(GangExit(code=command.code))


class MainCommand(AttachedCommand):
    """A main program with the verbs of a command; its parent hears what descriptors do not tell."""

    def __init__(self, pid: int, streams: CommandStreams, say: Callable[[ParentOrder], None]) -> None:
        super().__init__(
            pid, streams, signal=lambda number: say(MainSignal(number=number)), largest=LARGEST_CHANNEL_DATA
        )
        self._say = say
        self.code = LOST_CODE
        """How it has ended, as far as that is known."""

    def end_input(self) -> None:
        """Let it find the end of its input, which its parent has open, too; a terminal has none."""
        if self.takes_input and not self.has_terminal:
            super().end_input()
            self._say(MainInputEnd())

    def ended(self, code: int) -> None:
        """The parent tells how it ended, or is gone."""
        self.code = code
        super().ended(code)


async def _heard_out(line: PacketLine, command: MainCommand) -> None:
    """Hear what the parent says until it is gone. Raises DoorError."""
    try:
        while (packet := await line.hear(Speaker.PARENT)) is not None:
            if not isinstance(packet, MainProgramExited):
                raise DoorError("the parent of a main program shows that only once")
            command.ended(packet.code)
    finally:
        command.ended(command.code)


async def _said(line: PacketLine, order: ParentOrder) -> None:
    try:
        async with asyncio.timeout(PARENT_LIMIT):
            await line.say(order)
    except (OSError, TimeoutError):
        line.hang_up()  # one that does not read is none


def shown_main_program(raw: bytes) -> MainProgramShown:
    """The first packet of a parent. Raises DoorError."""
    packet = decoded(raw, Speaker.PARENT)
    if not isinstance(packet, MainProgramShown):
        raise DoorError("the parent of a main program shows that first")
    return packet


def _checked(shown: MainProgramShown, descriptors: list[int]) -> CommandStreams:
    """What a main program is reached by; refuses what is no terminal, or no pipe. Raises DoorError."""
    pipes = descriptors[1:] if shown.terminal else descriptors
    sound = (
        len(descriptors) == (2 if shown.terminal else shown.has_input)
        and (not shown.terminal or os.isatty(descriptors[0]))
        and all(stat.S_ISFIFO(os.fstat(each).st_mode) for each in pipes)
    )
    if not sound:
        raise DoorError("what came with a main program is not its terminal, or not its pipe")
    for each in descriptors:
        os.set_blocking(each, False)
    if shown.terminal:
        terminal, output = descriptors
        return CommandStreams(input=terminal, terminal=terminal, outputs={output: GangOutput})
    return CommandStreams(input=descriptors[0] if descriptors else None)
