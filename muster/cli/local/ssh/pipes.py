"""stdin and stdout of this program as one socket, as the SSH server wants one."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from muster.domain.errors import ConflictError

_PIECE = 256 * 1024


@asynccontextmanager
async def joined_pipes(reading: int, writing: int) -> AsyncIterator[socket.socket]:
    """A socket whose other end is read from one descriptor and written to another one, until the context ends.

    Raises ConflictError where either is no pipe or socket.
    """
    if os.isatty(reading) or os.isatty(writing):
        raise _not_by_ssh()
    loop = asyncio.get_running_loop()
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.setblocking(False)
        coming, reader = await _reader(loop, reading)
        try:
            going, writer = await _writer(loop, writing)
            try:
                async with asyncio.TaskGroup() as tasks:
                    inward = tasks.create_task(_bring(reader, there), name="what ssh says")
                    outward = tasks.create_task(_take(there, writer), name="what ssh is told")
                    try:
                        yield here
                    finally:
                        with suppress(OSError):
                            here.shutdown(socket.SHUT_WR)  # asyncssh may have closed it
                        inward.cancel()
                        await asyncio.wait({outward}, timeout=1.0)
                        outward.cancel()
            finally:
                going.close()
        finally:
            coming.close()


async def _reader(
    loop: asyncio.AbstractEventLoop, descriptor: int
) -> tuple[asyncio.ReadTransport, asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=_PIECE)
    try:
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(descriptor), "rb", 0)
        )
    except (ValueError, PermissionError) as error:
        raise _not_by_ssh() from error
    return transport, reader


async def _writer(
    loop: asyncio.AbstractEventLoop, descriptor: int
) -> tuple[asyncio.WriteTransport, asyncio.StreamWriter]:
    try:
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(os.dup(descriptor), "wb", 0)
        )
    except (ValueError, PermissionError) as error:
        raise _not_by_ssh() from error
    return transport, asyncio.StreamWriter(transport, protocol, None, loop)


def _not_by_ssh() -> ConflictError:
    return ConflictError("this command speaks with ssh, which starts it; `muster ssh JOB` does that")


async def _bring(reader: asyncio.StreamReader, there: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with suppress(ConnectionError):
        while data := await reader.read(_PIECE):
            await loop.sock_sendall(there, data)
    with suppress(OSError):
        there.shutdown(socket.SHUT_WR)


async def _take(there: socket.socket, writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    with suppress(ConnectionError):
        while data := await loop.sock_recv(there, _PIECE):
            writer.write(data)
            await writer.drain()
