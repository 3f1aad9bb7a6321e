"""Ports of an execution on this machine: each connection here is one that is made there."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from muster.client.attachments.stream import AttachmentStream
from muster.domain.attachments.frame import (
    LARGEST_CHANNEL_DATA,
    AttachmentEnded,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOutput,
    AttachmentOutputEnd,
)
from muster.domain.errors import ConflictError, MusterError, PermissionDeniedError

MOST_FORWARDED = 256
"""Connections of one forward at a time; further ones wait to be taken."""

Connect = Callable[[], Awaitable[AttachmentStream]]
"""Opens a connection in the execution; raises MusterError."""

Told = Callable[[str], None]
"""Is told, for people, why a connection came to nothing."""


class PortForward:
    """A port here that leads to one of an execution, until it is closed; use it with `async with`."""

    def __init__(self, connect: Connect, told: Told) -> None:
        self._connect = connect
        self._told = told
        self._free = asyncio.Semaphore(MOST_FORWARDED)
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.get_running_loop()
        self.address = ""
        """Where it listens, as HOST:PORT."""

    async def listen(self, host: str, port: int) -> None:
        """Listen; port 0 takes any. Raises ConflictError or PermissionDeniedError where that is not possible."""
        try:
            self._server = await asyncio.start_server(self._begin, host, port, limit=LARGEST_CHANNEL_DATA)
        except PermissionError:
            raise PermissionDeniedError(
                f"port {port} of this machine may not be listened at; take one above 1023"
            ) from None
        except OSError as error:
            raise ConflictError(
                f"port {port} of this machine cannot be listened at ({error.strerror}); 0 takes any that is free"
            ) from None
        bound = self._server.sockets[0].getsockname()
        self.address = f"[{bound[0]}]:{bound[1]}" if ":" in bound[0] else f"{bound[0]}:{bound[1]}"

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self.address.rpartition(":")[2])

    async def close(self) -> None:
        """Listen no more, and end all connections."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        open_ = tuple(self._open)
        for each in open_:
            each.cancel()
        await asyncio.gather(*open_, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer), name="forwarded connection")
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._free:
            try:
                with suppress(OSError):
                    await self._joined(reader, writer)
            except MusterError as error:
                self._told(str(error))
                _reset(writer)
            finally:
                writer.close()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = await self._connect()
        try:
            sending = asyncio.ensure_future(_send(reader, stream))
            try:
                ended = await _receive(stream, writer)
                if ended.text:
                    self._told(ended.text)
                    _reset(writer)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        finally:
            await stream.close()


async def _send(reader: asyncio.StreamReader, stream: AttachmentStream) -> None:
    while data := await reader.read(LARGEST_CHANNEL_DATA):
        await stream.send(AttachmentInput(data=data))
    await stream.send(AttachmentInputEnd())


async def _receive(stream: AttachmentStream, writer: asyncio.StreamWriter) -> AttachmentEnded:
    while True:
        match await stream.receive():
            case AttachmentOutput(data=data):
                writer.write(data)
                await writer.drain()
            case AttachmentOutputEnd():
                writer.write_eof()
            case AttachmentEnded() as ended:
                return ended


def _reset(writer: asyncio.StreamWriter) -> None:
    """Have the connection end with a reset, as one that nobody took."""
    inner = writer.get_extra_info("socket")
    if inner is not None:
        with suppress(OSError):
            inner.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
