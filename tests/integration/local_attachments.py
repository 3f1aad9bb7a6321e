"""Attachments to an execution that is a directory of this machine: real programs, terminals, connections and files.

As a program it is the ProxyCommand of ssh: the SSH server in front of such attachments.
"""

import asyncio
import fcntl
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import termios
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from muster.cli.local.ssh.host_key import host_key
from muster.cli.local.ssh.pipes import joined_pipes
from muster.cli.local.ssh.server import serve_ssh
from muster.client.attachments.stream import AttachmentStream, FrameToExecution
from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentOutputEnd,
    AttachmentSignal,
    AttachmentSize,
    AttachmentTrouble,
    FrameOfCommand,
)
from muster.domain.attachments.request import (
    AttachmentRequest,
    CommandRequest,
    ConnectionRequest,
    FilesRequest,
    TerminalSize,
)
from muster.domain.errors import ConflictError
from tests.contract.door_side import program as inside_program

PIECE = 64 * 1024
MOST_HELD = 8
"""Pieces of output that wait for their reader."""


class LocalAttachment:
    """An attachment to something that runs here."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[FrameOfCommand] = asyncio.Queue(MOST_HELD)
        self.frames.put_nowait(AttachmentOpened())
        self.working: set[asyncio.Task[None]] = set()
        self.ended: AttachmentEnded | None = None

    async def receive(self) -> FrameOfCommand:
        if self.ended is not None:
            return self.ended
        frame = await self.frames.get()
        if isinstance(frame, AttachmentEnded):
            self.ended = frame
        return frame

    async def send(self, frame: FrameToExecution) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        for task in self.working:
            task.cancel()
        await asyncio.gather(*self.working, return_exceptions=True)


class LocalCommand(LocalAttachment):
    """A command with pipes, or with a terminal."""

    def __init__(self, program: Process, terminal: int | None) -> None:
        super().__init__()
        self.program = program
        self.terminal = terminal
        self.typed = asyncio.Lock()
        self.working.add(asyncio.create_task(self._follow(), name="a local command"))

    async def send(self, frame: FrameToExecution) -> None:
        match frame:
            case AttachmentInput(data=data) if self.terminal is not None:
                await asyncio.to_thread(os.write, self.terminal, data)
            case AttachmentInput(data=data):
                assert self.program.stdin is not None
                with suppress(ConnectionError):
                    self.program.stdin.write(data)
                    await self.program.stdin.drain()
            case AttachmentInputEnd() if self.program.stdin is not None:
                self.program.stdin.close()
            case AttachmentSignal(number=number):
                self._signal(number)
            case AttachmentSize(size=size) if self.terminal is not None:
                resize(self.terminal, size)
            case _:
                pass

    async def close(self) -> None:
        self._signal(signal.SIGHUP)
        await super().close()
        await self.program.wait()
        if self.terminal is not None:
            os.close(self.terminal)

    def _signal(self, number: int) -> None:
        if self.program.returncode is None:
            os.killpg(self.program.pid, number)

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            if self.terminal is not None:
                tasks.create_task(self._screen(self.terminal))
            else:
                assert self.program.stdout is not None
                assert self.program.stderr is not None
                tasks.create_task(self._pipe(self.program.stdout, AttachmentOutput))
                tasks.create_task(self._pipe(self.program.stderr, AttachmentErrorOutput))
        code = await self.program.wait()
        await self.frames.put(AttachmentEnded(code=code if code >= 0 else 128 - code))

    async def _pipe(
        self, reader: asyncio.StreamReader, kind: type[AttachmentOutput] | type[AttachmentErrorOutput]
    ) -> None:
        while data := await reader.read(PIECE):
            await self.frames.put(kind(data=data))

    async def _screen(self, terminal: int) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=PIECE)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(os.dup(terminal), "rb", 0))
        try:
            with suppress(OSError):  # a terminal ends with EIO
                while data := await reader.read(PIECE):
                    await self.frames.put(AttachmentOutput(data=data))
        finally:
            transport.close()


class LocalStream(LocalAttachment):
    """A connection, or files: one socket, which ends when both directions have."""

    def __init__(self, line: socket.socket, server: Process | None = None) -> None:
        super().__init__()
        line.setblocking(False)
        self.line = line
        self.server = server
        self.open_directions = 2
        self.working.add(asyncio.create_task(self._follow(), name="a local connection"))

    async def send(self, frame: FrameToExecution) -> None:
        with suppress(ConnectionError):
            match frame:
                case AttachmentInput(data=data):
                    await asyncio.get_running_loop().sock_sendall(self.line, data)
                case AttachmentInputEnd():
                    self.line.shutdown(socket.SHUT_WR)
                    await self._one_ended()
                case _:
                    pass

    async def close(self) -> None:
        await super().close()
        self.line.close()
        if self.server is not None:
            await self.server.wait()

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            while data := await loop.sock_recv(self.line, PIECE):
                await self.frames.put(AttachmentOutput(data=data))
        if self.server is not None:  # files end as soon as their server does
            await self.frames.put(AttachmentEnded(code=await self.server.wait()))
            return
        await self.frames.put(AttachmentOutputEnd())
        await self._one_ended()

    async def _one_ended(self) -> None:
        self.open_directions -= 1
        if self.server is None and not self.open_directions:
            await self.frames.put(AttachmentEnded(code=0))


class Refused(LocalAttachment):
    """An attachment that came to nothing."""

    def __init__(self, ended: AttachmentEnded) -> None:
        super().__init__()
        self.ended = ended

    async def send(self, frame: FrameToExecution) -> None:
        pass


async def attach(request: AttachmentRequest, directory: Path) -> AttachmentStream:
    """Attach to the directory."""
    match request:
        case CommandRequest():
            return await run(request, directory)
        case ConnectionRequest(host=host, port=port):
            line = socket.socket()
            line.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(line, (host, port))
            except OSError as error:
                line.close()
                text = f"nothing listens at port {port} of rank 0 ({os.strerror(error.errno or 0)})"
                return Refused(AttachmentEnded(code=1, trouble=AttachmentTrouble.NOT_REACHED, text=text))
            return LocalStream(line)
        case FilesRequest():
            here, there = socket.socketpair()
            with there:
                server = await asyncio.create_subprocess_exec(
                    "muster-inside", "files", executable=inside_program(), stdin=there, stdout=there, cwd=directory
                )
            return LocalStream(here, server)


async def run(request: CommandRequest, directory: Path) -> LocalAttachment:
    """Run a command in the directory."""
    shell = shutil.which("bash") or "/bin/sh"
    words = [shell, "-l"] if not request.words else [shell, "-c", *request.words] if request.line else request.words
    env = {**os.environ, "HOME": str(directory), **dict(each.split("=", 1) for each in request.env)}
    if request.terminal is None:
        program = await asyncio.create_subprocess_exec(
            *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=directory, env=env, start_new_session=True, limit=PIECE
        )
        return LocalCommand(program, None)
    mine, theirs = os.openpty()
    resize(mine, request.terminal)
    program = await asyncio.create_subprocess_exec(
        "setsid", "--ctty", "--wait", *words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=directory, env=env
    )
    os.close(theirs)
    return LocalCommand(program, mine)


def resize(terminal: int, size: TerminalSize) -> None:
    """Give a terminal its size."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))


async def serve(directory: Path, keys: Path, log: Path) -> None:
    """Be the ProxyCommand of ssh; `log` gets a line at the end."""

    async def attached(request: AttachmentRequest) -> AttachmentStream:
        if (directory / "refuses").exists():
            raise ConflictError("rank 0 of dev is being prepared on gpu-7 (pulling image 41 %)")
        return await attach(request, directory)

    def said(text: str) -> None:
        os.write(2, f"muster: {text}\n".encode())

    task = asyncio.current_task()
    assert task is not None
    for each in (signal.SIGHUP, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, task.cancel)
    try:
        async with joined_pipes(0, 1) as line:
            await serve_ssh(line, host_key(keys), attached, said)
    finally:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        with log.open("a") as file:
            file.write(f"ended with {usage.ru_maxrss} KiB\n")


def main(arguments: Sequence[str]) -> None:
    """Serve the directory that is named first, with the keys in the second, until ssh goes."""
    directory, keys, log, _ = arguments
    with suppress(asyncio.CancelledError):
        asyncio.run(serve(Path(directory), Path(keys), Path(log)))


if __name__ == "__main__":
    main(sys.argv[1:])
