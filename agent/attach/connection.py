"""A connection that the companion has made, as its agent sees it: to a port, or to what serves files."""

import asyncio
import socket
from contextlib import suppress

from agent.attach.line import ready
from agent.attach.turns import Turns
from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA

NO_CODE = 0
"""Exit code of what no program of ours serves."""


class AttachedConnection:
    """Bytes each way; one task reads and another one may write."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._reading = Turns()
        self._writing = Turns()
        self._writable = True
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def read(self, largest: int = LARGEST_CHANNEL_DATA) -> bytes:
        """The next piece; empty: the other side has ended its direction. Raises ConnectionError where it broke off."""
        while True:
            try:
                data = self._connection.recv(largest)
            except BlockingIOError:
                await ready(self._connection.fileno(), asyncio.get_running_loop().add_reader)
                self._reading.begin()
            else:
                await self._reading.count(len(data))
                return data

    async def write(self, data: bytes) -> None:
        """Send all of it; waits while the other side does not read. What reads no more gets nothing."""
        view = memoryview(data)
        while view and self._writable:
            try:
                sent = self._connection.send(view)
            except BlockingIOError:
                await ready(self._connection.fileno(), asyncio.get_running_loop().add_writer)
                self._writing.begin()
            except OSError:
                self._writable = False
            else:
                view = view[sent:]
                await self._writing.count(sent)

    def end_input(self) -> None:
        """End this direction; what the other side sends still comes."""
        self._writable = False
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    async def code(self) -> int:
        """The exit code of the program of the companion that serves it, once that has ended."""
        return await asyncio.shield(self._exit)

    def ended(self, code: int) -> None:
        """The companion tells how what serves it ended, or is gone."""
        if not self._exit.done():
            self._exit.set_result(code)

    def close(self) -> None:
        """Let go of it; whoever reads or writes must have been cancelled before, or be the one who does it."""
        self._writable = False
        self._connection.close()
