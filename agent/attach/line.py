"""One line to the door: packets in and out, descriptors with them, and nothing that waits for ever."""

import asyncio
import os
import select
import socket
from collections.abc import Callable
from contextlib import closing, suppress

from agent.core.door.coding import decoded, encoded
from agent.core.door.packets import LARGEST_PACKET, DoorError, Packet, Speaker

MOST_DESCRIPTORS = 4
"""Descriptors that are taken with a packet; three are the most that belong to one."""

BYTES_OF_A_TURN = 1024 * 1024
"""Bytes that are moved without having to wait, after which everything else that is due comes first."""


class PacketLine:
    """A connection of packets; one task reads, others write."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._writing = asyncio.Lock()

    async def hear_raw(self) -> tuple[bytes, list[int]]:
        """The next packet as bytes, and its descriptors; no bytes: the other side is gone. Raises DoorError."""
        while True:
            flags = socket.MSG_CMSG_CLOEXEC
            try:
                raw, descriptors, found, _ = socket.recv_fds(self._connection, LARGEST_PACKET, MOST_DESCRIPTORS, flags)
            except BlockingIOError:
                await ready(self._connection.fileno(), asyncio.get_running_loop().add_reader)
            except ConnectionError:
                return b"", []
            else:
                if found & socket.MSG_TRUNC:
                    close_all(descriptors)
                    raise DoorError(f"the packet is longer than {LARGEST_PACKET} bytes")
                return raw, descriptors

    async def hear(self, speaker: Speaker) -> Packet | None:
        """The next packet of a side that sends no descriptors; None: it is gone. Raises DoorError."""
        raw, descriptors = await self.hear_raw()
        close_all(descriptors)
        return decoded(raw, speaker) if raw else None

    async def gone(self) -> None:
        """Wait until the other side has hung up, also while packets of it wait to be heard."""
        with closing(select.epoll()) as watch:
            watch.register(self._connection, select.EPOLLRDHUP)
            await ready(watch.fileno(), asyncio.get_running_loop().add_reader)

    @property
    def is_dead(self) -> bool:
        """Whether the other side has hung up, also before anybody was told."""
        watch = select.poll()
        watch.register(self._connection, select.POLLRDHUP)
        return bool(watch.poll(0))

    async def say(self, packet: Packet) -> None:
        """Send a packet; waits while the other side does not read. Raises ConnectionError or DoorError."""
        raw = encoded(packet)
        async with self._writing:
            await asyncio.get_running_loop().sock_sendall(self._connection, raw)

    def close(self) -> None:
        """Hang up; whoever waits for a packet must have been cancelled before, or be the one who does it."""
        self._connection.close()

    def hang_up(self) -> None:
        """End both directions at once, so that whoever waits for a packet hears that there is none."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)


def close_all(descriptors: list[int]) -> None:
    """Close descriptors, each once."""
    while descriptors:
        os.close(descriptors.pop())


async def ready(descriptor: int, watch: Callable[..., None]) -> None:
    """Wait until a descriptor can be read, or written to; `watch` is the loop's method for one of them."""
    loop = asyncio.get_running_loop()
    forget = loop.remove_reader if watch == loop.add_reader else loop.remove_writer
    found = loop.create_future()
    watch(descriptor, _settle, found)
    try:
        await found
    finally:
        forget(descriptor)


def _settle(found: "asyncio.Future[None]") -> None:
    if not found.done():
        found.set_result(None)


class LineTurns:
    """Counts what one task moves in one direction."""

    def __init__(self) -> None:
        self._moved = 0

    def begin(self) -> None:
        """Note that others have just had their turn."""
        self._moved = 0

    async def count(self, size: int) -> None:
        """Note that bytes were moved; gives way where they are many."""
        self._moved += size
        if self._moved >= BYTES_OF_A_TURN:
            self._moved = 0
            await asyncio.sleep(0)
