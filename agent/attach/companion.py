"""The companion of one execution, as its agent sees it: asks it for commands, and hears how they go."""

import asyncio
import itertools
import os
from dataclasses import dataclass, replace
from errno import EAGAIN, ENOENT, ENOTDIR

from agent.attach.command import LOST_CODE, AttachedCommand, checked
from agent.attach.line import PacketLine, close_all
from agent.core.door.coding import decoded
from agent.core.door.packets import (
    CommandExited,
    CommandFailed,
    CommandSignal,
    CommandStarted,
    CommandWanted,
    DoorError,
    Speaker,
)
from agent.core.observed import COMMAND_NOT_FOUND

COMPANION_LIMIT = 10.0
"""Seconds in which a companion comes to the door, and in which it starts a command."""

NOT_RUN = 126
"""Exit code of a shell for a program that cannot be run."""

HANGUP = 1


class CompanionAwayError(Exception):
    """No companion has come to the door in time, or it is gone."""


class CommandRefusedError(Exception):
    """A command could not be started."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        """The exit code that a shell gives for it."""


@dataclass(frozen=True, slots=True)
class _Starting:
    wanted: CommandWanted
    answer: "asyncio.Future[AttachedCommand]"


class Companion:
    """One line at a time: a companion that comes anew takes the place of the one before."""

    def __init__(self) -> None:
        self._line: PacketLine | None = None
        self._present = asyncio.Event()
        self._numbers = itertools.count(int.from_bytes(os.urandom(3), "big"))
        """Not those of the agent before, whose commands may go on."""
        self._starting: dict[int, _Starting] = {}
        self._commands: dict[int, AttachedCommand] = {}
        self._saying: set[asyncio.Task[None]] = set()

    async def serve(self, line: PacketLine) -> None:
        """Hear what it says until it is gone. Raises DoorError."""
        if self._line is not None:
            self._line.hang_up()
            self._lose()
        self._line = line
        self._present.set()
        try:
            while (heard := await line.hear_raw())[0]:
                if self._line is not line:
                    close_all(heard[1])
                    return
                self._take(*heard)
        finally:
            if self._line is line:
                self._gone()

    async def run(self, wanted: CommandWanted) -> AttachedCommand:
        """Start a command, whatever its number says; raises CompanionAwayError, CommandRefusedError or DoorError."""
        try:
            async with asyncio.timeout(COMPANION_LIMIT):
                while True:
                    await self._present.wait()
                    assert self._line is not None, "it is present"
                    try:
                        return await self._started_by(self._line, wanted)
                    except ConnectionError:  # that one was killed just now, and another one may come
                        self._gone()
        except TimeoutError as error:
            message = f"nothing in the execution has started the command within {COMPANION_LIMIT:g} s"
            raise CompanionAwayError(message) from error

    async def _started_by(self, line: PacketLine, wanted: CommandWanted) -> AttachedCommand:
        """Have it started by the companion at a line; raises ConnectionError where that has not got to know of it."""
        number = next(self._numbers)
        asked = _Starting(replace(wanted, number=number), asyncio.get_running_loop().create_future())
        self._starting[number] = asked
        try:
            await line.say(asked.wanted)
            return await asked.answer
        finally:
            self._starting.pop(number, None)

    def _take(self, raw: bytes, descriptors: list[int]) -> None:
        """Take in what it says; whatever is wrong with that, no descriptor is left open."""
        try:
            packet = decoded(raw, Speaker.COMPANION)
            match packet:
                case CommandStarted(number=number, pid=pid):
                    self._started(number, pid, descriptors)
                case CommandExited(number=number, code=code):
                    if number in self._commands:
                        self._commands.pop(number).ended(code)
                case CommandFailed(number=number, errno=errno):
                    if (asked := self._starting.pop(number, None)) is not None and not asked.answer.done():
                        asked.answer.set_exception(_refusal(asked.wanted, errno))
                case _:
                    raise DoorError("a companion says only once that it stays")
        finally:
            close_all(descriptors)

    def _started(self, number: int, pid: int, descriptors: list[int]) -> None:
        asked = self._starting.pop(number, None)
        if asked is None or asked.answer.done():  # whoever wanted it has gone away meanwhile
            self._signal(number, HANGUP)
            return
        wanted = asked.wanted
        checked(descriptors, has_input=wanted.has_input, terminal=wanted.terminal)
        command = AttachedCommand(
            pid,
            descriptors,
            has_input=wanted.has_input,
            terminal=wanted.terminal,
            signal=lambda signal: self._signal(number, signal),
        )
        descriptors.clear()  # they are the command's now
        self._commands[number] = command
        asked.answer.set_result(command)

    def _signal(self, number: int, signal: int) -> None:
        if self._line is not None:
            task = asyncio.get_running_loop().create_task(
                _try_to_say(self._line, CommandSignal(number=number, signal=signal)), name="signal for a command"
            )
            self._saying.add(task)
            task.add_done_callback(self._saying.discard)

    def _gone(self) -> None:
        self._line = None
        self._present.clear()
        self._lose()

    def _lose(self) -> None:
        """Nobody will tell any more how its commands end."""
        for asked in self._starting.values():
            if not asked.answer.done():
                asked.answer.set_exception(CompanionAwayError("the companion of the execution was killed"))
        self._starting.clear()
        for command in self._commands.values():
            command.ended(LOST_CODE)
        self._commands.clear()


async def _try_to_say(line: PacketLine, packet: CommandSignal) -> None:
    try:
        async with asyncio.timeout(COMPANION_LIMIT):
            await line.say(packet)
    except (OSError, TimeoutError):
        line.hang_up()  # a companion that does not read is none


def _refusal(wanted: CommandWanted, errno: int) -> CommandRefusedError | CompanionAwayError:
    name = wanted.words[0]
    if errno == EAGAIN:
        return CommandRefusedError(NOT_RUN, f"{name}: too many commands run in the execution already")
    if errno in {ENOENT, ENOTDIR}:
        return CommandRefusedError(COMMAND_NOT_FOUND, f"{name}: not found in the execution")
    return CommandRefusedError(NOT_RUN, f"{name}: {os.strerror(errno)}")
