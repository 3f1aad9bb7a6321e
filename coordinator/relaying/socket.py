"""The socket in the state directory to which the relay comes; the last one that comes is the one that counts."""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from coordinator.relay.messages import (
    LONGEST_RELAY_LINE,
    RELAY_SOCKET,
    RelayHello,
    line_of,
    relay_message,
)
from coordinator.relaying.desk import RelayDesk
from muster.domain.errors import MusterError

log = logging.getLogger(__name__)

RELAY_LINES = 8
"""Connections at once; further ones are closed."""

FIRST_LINE_LIMIT = 5.0
"""Seconds in which the relay says who it is."""

CERTIFICATE_LOOK = 60.0
"""Seconds between two looks at whether there is another certificate."""

_CREDENTIALS = struct.Struct("3i")


class RelaySocket:
    """Serves one desk."""

    def __init__(self, desk: RelayDesk, directory: Path) -> None:
        self._desk = desk
        self._path = directory / RELAY_SOCKET
        self._lines = 0
        self._stirred = asyncio.Event()
        self._talking: asyncio.Task[None] | None = None
        """The connection that counts."""
        desk.stir = self._stirred.set

    async def serve(self) -> None:
        """Serve until cancelled. Raises MusterError where the socket cannot be made."""
        listener = self._listener()
        try:
            async with asyncio.TaskGroup() as lines:
                server = await asyncio.start_unix_server(
                    partial(self._come, lines), sock=listener, limit=LONGEST_RELAY_LINE
                )
                async with server:
                    await server.serve_forever()
        finally:
            self._path.unlink(missing_ok=True)

    def _come(self, lines: asyncio.TaskGroup, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._lines >= RELAY_LINES:
            writer.close()
            return
        self._lines += 1
        talking = lines.create_task(self._talk(reader, writer), name="line to the relay")
        talking.add_done_callback(partial(self._over, writer))

    def _over(self, writer: asyncio.StreamWriter, _: "asyncio.Task[None]") -> None:
        """Also of a line whose task was cancelled before it had begun."""
        self._lines -= 1
        writer.close()

    def _listener(self) -> socket.socket:
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        parent = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            listener.bind(f"/proc/self/fd/{parent}/{self._path.name}")  # no path is too long for that
            self._path.chmod(0o600)
        except OSError as error:
            listener.close()
            raise MusterError(f"cannot make the socket {self._path} for the relay: {error.strerror}") from error
        finally:
            os.close(parent)
        return listener

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not _is_ours(writer):
                return
            async with asyncio.timeout(FIRST_LINE_LIMIT):
                hello = relay_message(await reader.readline())
            if isinstance(hello, RelayHello):
                await self._serve(hello, reader, writer)
        except (OSError, TimeoutError, ValueError) as error:
            log.warning("the line to the relay is broken", extra={"cause": str(error) or "it says nothing"})
        except Exception:  # the coordinator goes on
            log.exception("the line to the relay failed")
        finally:
            if self._talking is asyncio.current_task():
                self._talking = None
                self._desk.left()

    async def _serve(self, hello: RelayHello, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._talking is not None:
            self._talking.cancel()
        self._talking = asyncio.current_task()
        log.info("relay is there", extra={"version": hello.version})
        writer.write(b"".join(map(line_of, self._desk.welcome(hello))))
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell(writer), name="tell the relay")
            await self._hear(reader)
            telling.cancel()
        log.warning("relay is gone; attachments wait until it is back")

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        """Take in what the relay says until it is gone, or says what cannot be."""
        try:
            while line := await reader.readline():
                message = relay_message(line)
                if message is not None:
                    self._desk.hear(message)
        except (OSError, ValueError) as error:
            log.warning("the line to the relay is broken", extra={"cause": str(error)})

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # the reader hears of it, too
            while True:
                self._stirred.clear()
                writer.write(b"".join(map(line_of, self._desk.take())))
                await writer.drain()
                try:
                    async with asyncio.timeout(CERTIFICATE_LOOK):
                        await self._stirred.wait()
                except TimeoutError:
                    self._desk.look_again()


@asynccontextmanager
async def serving_relay(desk: RelayDesk, directory: Path) -> AsyncIterator[None]:
    """Have the relay come to the desk while the block runs; raises MusterError where there can be no socket."""
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(RelaySocket(desk, directory).serve(), name="socket for the relay")
        try:
            yield
        finally:
            serving.cancel()


def _is_ours(writer: asyncio.StreamWriter) -> bool:
    """Whether the program at the other end is of the same user, or root's."""
    said = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(said)
    return user in {0, os.geteuid()}
