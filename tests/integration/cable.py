"""A cable that a test can cut, hold and put together again: a TCP proxy between an agent and the coordinator."""

import asyncio
from typing import cast

LOOPBACK = "127.0.0.1"


class Cable:
    """Carries bytes in both directions as long as it is whole."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.address = ""
        """Where the agent dials."""
        self.brought = 0
        """Bytes that came from the target."""
        self._tasks = tasks
        self._ends: set[_End] = set()
        self._held: set[bool] = set()
        self._whole = True
        self._server: asyncio.Server
        self._target = ""

    async def lay(self, target: str) -> None:
        """Carry everything to the target from now on."""
        self._target = target
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _End(self, upwards=True), LOOPBACK, 0)
        self.address = f"{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Break every connection, and every one that is tried."""
        self._whole = False
        for end in tuple(self._ends):
            end.transport.abort()

    def mend(self) -> None:
        """Carry again."""
        self._whole = True

    def hold(self, *, upwards: bool = False, downwards: bool = False) -> None:
        """Carry nothing in a direction, without a connection being broken: it comes later, when let go of."""
        self._held |= {True} if upwards else set()
        self._held |= {False} if downwards else set()
        for end in self._ends:
            end.adapt()

    def let_go(self) -> None:
        """Carry what was held, and all that follows."""
        self._held = set()
        for end in self._ends:
            end.adapt()

    async def take_up(self) -> None:
        """The end of the cable."""
        self.cut()
        self._server.close()
        await self._server.wait_closed()

    def holds(self, *, upwards: bool) -> bool:
        """Whether nothing is carried in this direction."""
        return upwards in self._held

    def came(self, end: "_End", count: int) -> None:
        """Note that so many bytes came in at one end."""
        self.brought += 0 if end.upwards else count

    def connected(self, end: "_End") -> None:
        """One end of a connection is there; the agent's needs the coordinator's."""
        if not self._whole:
            end.transport.abort()
            return
        self._ends.add(end)
        if end.upwards:
            self._tasks.create_task(self._dial(end), name="cable: dial")

    def gone(self, end: "_End") -> None:
        """One end of a connection is not there any more."""
        self._ends.discard(end)

    async def _dial(self, end: "_End") -> None:
        host, _, port = self._target.rpartition(":")
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: _End(self, upwards=False, peer=end), host, int(port)
            )
        except OSError:
            end.transport.abort()


class _End(asyncio.Protocol):
    """One end of a connection: what comes in here goes out at its peer."""

    transport: asyncio.Transport

    def __init__(self, cable: Cable, *, upwards: bool, peer: "_End | None" = None) -> None:
        self.upwards = upwards
        self._cable = cable
        self._peer = peer
        self._full = False
        """Whether the peer takes nothing more for now."""
        self._early = b""
        """What came before there was a peer: Python 3.11.2 goes on reading what was paused at the start."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self._peer is None:
            self.transport.pause_reading()  # until there is a peer
        else:
            self._peer.meet(self)
        self._cable.connected(self)

    def meet(self, peer: "_End") -> None:
        """The other end is there."""
        self._peer = peer
        if self._early:
            peer.transport.write(self._early)
        self.adapt()
        if self.transport.is_closing():
            peer.transport.abort()

    def adapt(self) -> None:
        """Read, or do not read, as things are now."""
        wanted = self._peer is not None and not self._full and not self._cable.holds(upwards=self.upwards)
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self._cable.came(self, len(data))
        if self._peer is None:
            self._early += data
        else:
            self._peer.transport.write(data)

    def pause_writing(self) -> None:
        if self._peer is not None:
            self._peer.fill(full=True)

    def resume_writing(self) -> None:
        if self._peer is not None:
            self._peer.fill(full=False)

    def fill(self, *, full: bool) -> None:
        """The peer cannot send, or can send again."""
        self._full = full
        self.adapt()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self._cable.gone(self)
        if self._peer is not None:
            self._peer.transport.close()
