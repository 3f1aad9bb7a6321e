"""What an attachment leads to, such as a command or a connection, as frames go to it and come from it."""

import asyncio
import os
import socket
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Protocol, assert_never

from agent.attach.command import AttachedCommand
from agent.attach.companion import COMPANION_KILLED, Companion
from agent.attach.kept.attachment import KeptAttachment, TakenOverError
from agent.attach.kept.shells import KeptShells
from agent.attach.line import ready
from agent.core.door.packets import CommandWanted, GangErrorOutput, GangExit, GangOutput
from muster.domain.attachments.frame import (
    LARGEST_CHANNEL_DATA,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentFrame,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentKeptShells,
    AttachmentOutput,
    AttachmentOutputEnd,
    AttachmentSignal,
    AttachmentSize,
    AttachmentTrouble,
    FrameOfCommand,
)
from muster.domain.attachments.request import CommandRequest, ConnectionRequest, FilesRequest

TAKEN_OVER_CODE = 255
"""Exit code that is told of a shell that goes on with somebody else."""

LOOK_UP_LIMIT = 5.0
"""Seconds in which the address of a host must be found."""


class AttachmentTarget(Protocol):
    """What is attached to; one task reads, and one has frames taken."""

    async def read(self) -> FrameOfCommand:
        """The next frame, and last of all AttachmentEnded. Nothing is read before it is asked for."""
        ...

    async def take(self, frame: AttachmentFrame) -> None:
        """Give it what the other side sends; waits while it does not read."""
        ...

    def hang_up(self) -> None:
        """Let go of it: nobody is attached any more."""
        ...


class CommandTarget:
    """A command that was started for the attachment, a kept shell, or the main program."""

    def __init__(self, command: AttachedCommand | KeptAttachment) -> None:
        self._command = command

    async def read(self) -> FrameOfCommand:
        """The next frame of what it prints, and last of all how it ended."""
        try:
            piece = await self._command.read()
        except TakenOverError:
            text = "somebody else has attached here"
            return AttachmentEnded(code=TAKEN_OVER_CODE, trouble=AttachmentTrouble.TAKEN_OVER, text=text)
        match piece:
            case GangOutput(data=data):
                return AttachmentOutput(data=data)
            case GangErrorOutput(data=data):
                return AttachmentErrorOutput(data=data)
            case GangExit(code=code) if self._command.is_lost:
                return AttachmentEnded(code=code, trouble=AttachmentTrouble.LOST, text=COMPANION_KILLED)
            case GangExit(code=code):
                return AttachmentEnded(code=code & 0xFF)

    async def take(self, frame: AttachmentFrame) -> None:
        """Give it input, a signal or another size of its terminal."""
        match frame:
            case AttachmentInput(data=data):
                await self._command.write(data)
            case AttachmentInputEnd():
                self._command.end_input()
            case AttachmentSignal(number=number):
                self._command.signal(number)
            case AttachmentSize(size=size):
                self._command.resize(size.rows, size.columns)
            case _:
                pass

    def hang_up(self) -> None:
        """Leave a command alone, which then ends or is hung up. What is kept goes on."""
        if isinstance(self._command, AttachedCommand):
            self._command.hang_up()
        else:
            self._command.close()


class SocketTarget:
    """A connection that was made in the execution, or the line to what serves its files."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read_all = False
        self._sent_all = asyncio.Event()

    async def read(self) -> FrameOfCommand:
        """The next piece that it brings, the end of that, and the end of both directions."""
        if self._read_all:
            await self._sent_all.wait()
            return AttachmentEnded(code=0)
        data = await self._received()
        if data:
            return AttachmentOutput(data=data)
        self._read_all = True
        return AttachmentOutputEnd()

    async def take(self, frame: AttachmentFrame) -> None:
        """Send on a piece, or that there is no more."""
        match frame:
            case AttachmentInput(data=data):
                with suppress(OSError):  # whoever reads hears of it
                    await asyncio.get_running_loop().sock_sendall(self._connection, data)
            case AttachmentInputEnd():
                self._sent_all.set()
                with suppress(OSError):
                    self._connection.shutdown(socket.SHUT_WR)
            case _:
                pass

    def hang_up(self) -> None:
        """Close it."""
        self._connection.close()

    async def _received(self) -> bytes:
        while True:
            try:
                return self._connection.recv(LARGEST_CHANNEL_DATA)
            except BlockingIOError:
                await ready(self._connection.fileno(), asyncio.get_running_loop().add_reader)
            except OSError:
                self._sent_all.set()  # a connection that broke takes nothing any more
                return b""


class KeptShellsTarget:
    """The kept shells of an execution: they are listed, or one is ended."""

    def __init__(self, shells: KeptShells | None, end: str) -> None:
        """`shells`: None where nobody has attached. `end`: the name of the one to end; empty: they are listed."""
        self._shells = shells
        self._end = end
        self._listed = bool(end)

    async def read(self) -> FrameOfCommand:
        """What there is, and last of all whether it went well."""
        listed = () if self._shells is None else self._shells.listed()
        if not self._listed:
            self._listed = True
            return AttachmentKeptShells(shells=listed)
        if not self._end or (self._shells is not None and await self._shells.end(self._end)):
            return AttachmentEnded(code=0)
        names = ", ".join(each.name for each in listed) or "none"
        text = f"there is no kept shell {self._end} in the execution; there are: {names}"
        return AttachmentEnded(code=1, trouble=AttachmentTrouble.REFUSED, text=text)

    async def take(self, frame: AttachmentFrame) -> None:
        """Take nothing."""

    def hang_up(self) -> None:
        """Have nothing to let go of."""


async def opened(companion: Companion, request: CommandRequest | ConnectionRequest | FilesRequest) -> AttachmentTarget:
    """What the companion of an execution opens; raises whatever opening it raises."""
    match request:
        case CommandRequest():
            return await started(companion, request)
        case ConnectionRequest():
            return await connected(companion, request)
        case FilesRequest():
            return await served(companion)
        case _:
            assert_never(request)


async def started(companion: Companion, request: CommandRequest) -> CommandTarget:
    """A command of a request, or a kept shell.

    Raises CompanionAwayError, CommandRefusedError, TooManyKeptError or DoorError.
    """
    size = request.terminal
    wanted = CommandWanted(
        number=0,
        words=(" ".join(request.words),) if request.line else request.words,
        shell=request.line or not request.words,
        kept_name=request.kept,
        env=request.env,
        workdir=request.workdir,
        terminal=size is not None,
        has_input=request.has_input,
    )
    if size is not None:
        wanted = replace(wanted, rows=size.rows, columns=size.columns)
    if request.kept:
        return CommandTarget(await companion.kept.attach(wanted))
    return CommandTarget(await companion.run(wanted, LARGEST_CHANNEL_DATA))


async def served(companion: Companion) -> SocketTarget:
    """Files of the execution; raises CompanionAwayError, CommandRefusedError or DoorError."""
    return SocketTarget(await companion.files())


async def connected(companion: Companion, request: ConnectionRequest) -> SocketTarget:
    """A connection of a request; raises CompanionAwayError, DoorError, or OSError where nothing is reached."""
    failure: OSError | None = None
    for address in await _addresses(request.host, request.port):
        try:
            return SocketTarget(await companion.connect(address, request.port))
        except OSError as error:
            failure = failure or error
    raise failure or OSError(0, f"{request.host} has no address")


async def _addresses(host: str, port: int) -> list[IPv4Address | IPv6Address]:
    """Addresses of a host, in the order in which they are to be tried. Raises OSError."""
    if host == "localhost":
        return [IPv4Address("127.0.0.1"), IPv6Address("::1")]
    with suppress(ValueError):
        return [ip_address(host.removeprefix("[").removesuffix("]"))]
    try:
        async with asyncio.timeout(LOOK_UP_LIMIT):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise OSError(0, f"the address of {host} was not found within {LOOK_UP_LIMIT:g} s") from None
    except socket.gaierror as error:
        raise OSError(0, f"{host} has no address: {error.strerror}") from None
    return list(dict.fromkeys(ip_address(str(each[4][0]).partition("%")[0]) for each in found))


def sentence_of(error: OSError) -> str:
    """What went wrong, in words."""
    return error.strerror or (os.strerror(error.errno) if error.errno else str(error))
