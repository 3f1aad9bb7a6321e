"""The companion of one execution, as its agent sees it: asks it for commands, connections and files."""

import asyncio
import itertools
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from errno import EAGAIN, ENOENT, ENOTDIR
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import TypeVar

from agent.attach.command import AttachedCommand, CommandStreams, checked
from agent.attach.kept.shells import KeptShells
from agent.attach.line import PacketLine, close_all, ready
from agent.core.door.coding import decoded
from agent.core.door.packets import (
    LARGEST_DATA,
    CommandExited,
    CommandFailed,
    CommandKept,
    CommandSignal,
    CommandStarted,
    CommandWanted,
    CompanionOrder,
    ConnectionBegun,
    ConnectionFailed,
    ConnectionWanted,
    DoorError,
    FaultyPart,
    FilesWanted,
    Speaker,
)
from agent.core.observed import COMMAND_NOT_FOUND
from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA

COMPANION_LIMIT = 10.0
"""Seconds in which a companion comes to the door, and in which it starts a command."""

NOT_RUN = 126
"""Exit code of a shell for a program that cannot be run."""

HANGUP = 1

COMPANION_KILLED = "the companion of the execution was killed"
"""What people are told who had something from it."""

T = TypeVar("T")


class CompanionAwayError(Exception):
    """No companion has come to the door in time, or it is gone."""


class CommandRefusedError(Exception):
    """A command could not be started."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        """The exit code that a shell gives for it."""


class _NotHeardError(Exception):
    """A companion was killed before it got to know of what it was asked for."""


@dataclass(frozen=True, slots=True)
class _StartingCommand:
    """A command that is being started."""

    order: CommandWanted
    largest: int
    answer: "asyncio.Future[AttachedCommand]"

    def begun(self, pid: int, descriptors: list[int], signal: Callable[[int], None]) -> AttachedCommand:
        """The command that runs, which whoever waits for it gets. Raises DoorError."""
        wanted = self.order
        checked(descriptors, has_input=wanted.has_input, terminal=wanted.terminal)
        streams = CommandStreams.of_command(descriptors, has_input=wanted.has_input, terminal=wanted.terminal)
        command = AttachedCommand(pid, streams, signal=signal, largest=self.largest)
        descriptors.clear()  # they are the command's now
        self.answer.set_result(command)
        return command


@dataclass(frozen=True, slots=True)
class _StartingFiles:
    """A server for files that is being started."""

    order: FilesWanted
    answer: "asyncio.Future[socket.socket]"

    def begun(self, descriptors: list[int]) -> None:
        """Give the line to it to whoever waits for that. Raises DoorError."""
        self.answer.set_result(_taken_socket(descriptors))


class Companion:
    """One line at a time: a companion that comes beside another one waits until that is gone."""

    def __init__(self) -> None:
        self.kept = KeptShells(self.run)
        """Shells in the execution that go on without whoever made them."""
        self._line: PacketLine | None = None
        self._place = asyncio.Lock()
        """The place of the one that is asked for things: two that took it from each other would do so for ever."""
        self._present = asyncio.Event()
        """Set while there is one, and when none will come any more."""
        self.came = False
        """Whether one ever came to this door."""
        self._over = False
        self._numbers = itertools.count(int.from_bytes(os.urandom(3), "big"))
        """Not those of the agent before, whose commands may go on."""
        self._starting: dict[int, _StartingCommand | _StartingFiles] = {}
        self._connecting: dict[int, asyncio.Future[socket.socket]] = {}
        self._running: dict[int, AttachedCommand] = {}
        self._saying: set[asyncio.Task[None]] = set()

    async def serve(self, line: PacketLine) -> None:
        """Hear what it says until it is gone. Raises DoorError."""
        async with self._place:
            self._line, self.came = line, True
            self._present.set()
            try:
                while (heard := await line.hear_raw())[0]:
                    self._take(*heard)
            finally:
                self._gone()

    @property
    def present(self) -> bool:
        """Whether one is there; one that was killed just now is not."""
        return self._line is not None and not self._line.is_dead

    async def comes(self, limit: float = COMPANION_LIMIT) -> bool:
        """Wait until one is there, for so many seconds at most, or until none can come any more; whether it is."""
        if not self.present:
            self._gone()
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._present.wait()
        return self.present

    def end(self) -> None:
        """Know that user code has ended: whoever waits for one hears that none will come."""
        self._over = True
        self._present.set()

    async def run(self, wanted: CommandWanted, largest: int = LARGEST_DATA) -> AttachedCommand:
        """Start a command, whatever its number says; no piece of its output is larger than `largest`.

        Raises CompanionAwayError, CommandRefusedError or DoorError.
        """
        return await self._asked(lambda line: self._started_by(line, wanted, largest), "has started the command")

    async def files(self) -> socket.socket:
        """A line to an SFTP server for the files of the execution, with the rights of its user; it does not block.

        Raises CompanionAwayError, CommandRefusedError or DoorError.
        """
        return await self._asked(self._offered_by, "has opened its files")

    async def connect(self, address: IPv4Address | IPv6Address, port: int) -> socket.socket:
        """A connection in the network of the execution, by its user; it does not block.

        Raises CompanionAwayError, OSError where nothing is reached, or DoorError.
        """
        begun = await self._asked(lambda line: self._begun_by(line, address, port), "has begun the connection")
        with ExitStack() as unless_it_is_there:
            unless_it_is_there.enter_context(begun)
            async with asyncio.timeout(COMPANION_LIMIT):
                await ready(begun.fileno(), asyncio.get_running_loop().add_writer)
            if errno := begun.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(errno, os.strerror(errno))
            unless_it_is_there.pop_all()
        return begun

    async def _asked(self, ask: Callable[[PacketLine], Awaitable[T]], what: str) -> T:
        """What the companion answers, or another one that comes in its place; raises CompanionAwayError."""
        try:
            async with asyncio.timeout(COMPANION_LIMIT):
                while True:
                    await self._present.wait()
                    if self._line is None:
                        raise CompanionAwayError("the execution has ended")
                    try:
                        return await ask(self._line)
                    except _NotHeardError:  # that one was killed just now, and another one may come
                        self._gone()
        except TimeoutError as error:
            raise CompanionAwayError(f"nothing in the execution {what} within {COMPANION_LIMIT:g} s") from error

    async def _begun_by(self, line: PacketLine, address: IPv4Address | IPv6Address, port: int) -> socket.socket:
        """Have it begun by the companion at a line; raises _NotHeardError."""
        number = next(self._numbers)
        answer: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
        self._connecting[number] = answer
        try:
            await _said(line, ConnectionWanted(number=number, address=address, port=port))
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                answer.result().close()  # it came just now, and nobody waits for it any more
            raise
        finally:
            self._connecting.pop(number, None)

    async def _started_by(self, line: PacketLine, wanted: CommandWanted, largest: int) -> AttachedCommand:
        """Have it started by the companion at a line; raises _NotHeardError."""
        answer: asyncio.Future[AttachedCommand] = asyncio.get_running_loop().create_future()
        await self._answered(line, _StartingCommand(replace(wanted, number=next(self._numbers)), largest, answer))
        return answer.result()

    async def _offered_by(self, line: PacketLine) -> socket.socket:
        """Have files served by the companion at a line; raises _NotHeardError."""
        answer: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
        await self._answered(line, _StartingFiles(FilesWanted(number=next(self._numbers)), answer))
        return answer.result()

    async def _answered(self, line: PacketLine, asked: _StartingCommand | _StartingFiles) -> None:
        self._starting[asked.order.number] = asked
        try:
            await _said(line, asked.order)
            await asked.answer
        except asyncio.CancelledError:
            if asked.answer.done() and not asked.answer.cancelled() and asked.answer.exception() is None:
                asked.answer.result().close()  # it came just now, and nobody waits for it any more
                self._signal(asked.order.number, HANGUP)
            raise
        finally:
            self._starting.pop(asked.order.number, None)

    def _take(self, raw: bytes, descriptors: list[int]) -> None:
        """Take in what it says; whatever is wrong with that, no descriptor is left open."""
        try:
            packet = decoded(raw, Speaker.COMPANION)
            match packet:
                case CommandStarted(number=number, pid=pid):
                    self._started(number, pid, descriptors)
                case CommandExited(number=number, code=code):
                    if number in self._running:
                        self._running.pop(number).ended(code)
                case CommandFailed(number=number):
                    if (asked := self._starting.pop(number, None)) is not None and not asked.answer.done():
                        asked.answer.set_exception(_refusal(asked.order, packet))
                case CommandKept(number=number, pid=pid, name=name):
                    self._kept(number, pid, name, descriptors)
                case ConnectionBegun(number=number):
                    self._begun(number, descriptors)
                case ConnectionFailed(number=number, errno=errno):
                    if (answer := self._connecting.pop(number, None)) is not None and not answer.done():
                        answer.set_exception(OSError(errno, os.strerror(errno)))
                case _:
                    raise DoorError("a companion says only once that it stays")
        finally:
            close_all(descriptors)

    def _started(self, number: int, pid: int, descriptors: list[int]) -> None:
        asked = self._starting.pop(number, None)
        if asked is None or asked.answer.done():  # whoever wanted it has gone away meanwhile
            self._signal(number, HANGUP)
            return
        if isinstance(asked, _StartingFiles):
            asked.begun(descriptors)
        else:
            self._running[number] = asked.begun(pid, descriptors, partial(self._signal, number))

    def _kept(self, number: int, pid: int, name: str, descriptors: list[int]) -> None:
        checked(descriptors, has_input=True, terminal=True)
        signal = partial(self._signal, number)
        streams = CommandStreams.of_command(descriptors, has_input=True, terminal=True)
        command = AttachedCommand(pid, streams, signal=signal, largest=LARGEST_CHANNEL_DATA)
        descriptors.clear()  # they are the command's now
        self._running[number] = command
        self.kept.returned(name, command)

    def _begun(self, number: int, descriptors: list[int]) -> None:
        connection = _taken_socket(descriptors)
        answer = self._connecting.pop(number, None)
        if answer is None or answer.done():
            connection.close()
        else:
            answer.set_result(connection)

    def _signal(self, number: int, signal: int) -> None:
        if self._line is not None:
            task = asyncio.get_running_loop().create_task(
                _try_to_say(self._line, CommandSignal(number=number, signal=signal)), name="signal for a command"
            )
            self._saying.add(task)
            task.add_done_callback(self._saying.discard)

    def _gone(self) -> None:
        self._line = None
        if not self._over:
            self._present.clear()
        self._lose()

    def _lose(self) -> None:
        """Nobody will tell any more how its commands end."""
        for asked in self._starting.values():
            if not asked.answer.done():
                asked.answer.set_exception(CompanionAwayError(COMPANION_KILLED))
        self._starting.clear()
        for answer in self._connecting.values():
            if not answer.done():
                answer.set_exception(CompanionAwayError(COMPANION_KILLED))
        self._connecting.clear()
        for each in self._running.values():
            each.lost()
        self._running.clear()


def _taken_socket(descriptors: list[int]) -> socket.socket:
    """The one socket that came with a packet. Raises DoorError."""
    if len(descriptors) != 1 or not stat.S_ISSOCK(os.fstat(descriptors[0]).st_mode):
        raise DoorError("what came with a connection is not its socket")
    taken = socket.socket(fileno=descriptors.pop())
    taken.setblocking(False)
    return taken


async def _said(line: PacketLine, packet: CompanionOrder) -> None:
    try:
        await line.say(packet)
    except ConnectionError as error:
        raise _NotHeardError from error


async def _try_to_say(line: PacketLine, packet: CommandSignal) -> None:
    try:
        async with asyncio.timeout(COMPANION_LIMIT):
            await line.say(packet)
    except (OSError, TimeoutError):
        line.hang_up()  # a companion that does not read is none


def _refusal(order: CommandWanted | FilesWanted, failed: CommandFailed) -> CommandRefusedError:
    """The error of a command that did not start, with the code of a shell for it."""
    reason = os.strerror(failed.errno)
    name = "files" if isinstance(order, FilesWanted) else "the shell" if order.shell else order.words[0]
    if failed.errno == EAGAIN:
        return CommandRefusedError(NOT_RUN, f"{name}: too many commands run in the execution already")
    if failed.part is FaultyPart.DIRECTORY and isinstance(order, CommandWanted):
        missing = "no such directory in the execution" if failed.errno == ENOENT else reason
        return CommandRefusedError(NOT_RUN, f"{order.workdir}: {missing}")
    if failed.part is FaultyPart.STREAMS:
        return CommandRefusedError(NOT_RUN, f"{name}: no terminal or pipe can be made in the execution: {reason}")
    if failed.errno in {ENOENT, ENOTDIR}:
        return CommandRefusedError(COMMAND_NOT_FOUND, f"{name}: not found in the execution")
    return CommandRefusedError(NOT_RUN, f"{name}: {reason}")
