"""A client of HTTP/2 that does what no client does: it begins calls and does not go on with them."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from muster.trust.names import SERVER_NAME

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4
_INITIAL_WINDOW = 4
_PIECE = 16 * 1024
_FIRST_WINDOW = 65_535
_OPEN_WIDE = (1 << 31) - 1 - _FIRST_WINDOW
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Connection:
    """One connection, on which the other side's windows are kept to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._window = self._each = _FIRST_WINDOW
        self._windows: dict[int, int] = {}
        self._next = 1
        self.settled = asyncio.Event()
        """Set once the other side has said how it wants to be spoken to."""
        self._news = asyncio.Condition()

    @property
    def open(self) -> int:
        """Calls that the other side has not ended."""
        return len(self._windows)

    async def begin(self, path: str, token: str = "", **headers: str) -> int:
        """Begin a call and send nothing of its message; gives its number."""
        shown = {"authorization": f"Bearer {token}"} if token else {}
        fields = {
            ":method": "POST",
            ":scheme": "https",
            ":path": path,
            ":authority": SERVER_NAME,
            "content-type": "application/grpc",
            "te": "trailers",
            **shown,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        number, self._next = self._next, self._next + 2
        self._windows[number] = self._each
        block = b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields.items())
        self._send(_HEADERS, _END_HEADERS, number, block)
        await self._writer.drain()
        return number

    async def send(self, number: int, data: bytes, patience: float = 1.0) -> int:
        """Send bytes on a call while the other side takes them; gives how many it took."""
        sent = 0
        while sent < len(data):
            async with self._news:
                with suppress(TimeoutError):
                    async with asyncio.timeout(patience):
                        await self._news.wait_for(lambda: self._room(number) != 0)
            room = self._room(number)
            if room <= 0:
                break
            piece = data[sent : sent + min(_PIECE, room)]
            self._window -= len(piece)
            self._windows[number] -= len(piece)
            self._send(_DATA, 0, number, piece)
            sent += len(piece)
            await self._writer.drain()
        return sent

    async def all_ended(self, patience: float) -> bool:
        """Whether the other side has ended all calls within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience), self._news:
                await self._news.wait_for(lambda: not self._windows)
        return not self._windows

    async def end_of(self, number: int) -> None:
        """Wait until the other side has ended a call."""
        async with self._news:
            await self._news.wait_for(lambda: number not in self._windows)

    async def read(self) -> None:
        """Hear what the other side says until it hangs up."""
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                head = await self._reader.readexactly(9)
                kind, flags = head[3], head[4]
                payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
                async with self._news:
                    self._heard(kind, flags, int.from_bytes(head[5:], "big") & 0x7FFFFFFF, payload)
                    self._news.notify_all()
        async with self._news:
            self._windows.clear()
            self._news.notify_all()

    def greet(self) -> None:
        """Say what a client says first."""
        self._writer.write(_GREETING)
        self._send(_SETTINGS, 0, 0, b"")
        self._send(_WINDOW, 0, 0, struct.pack(">I", _OPEN_WIDE))

    def _heard(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == _INITIAL_WINDOW:
                    self._windows = {each: room + value - self._each for each, room in self._windows.items()}
                    self._each = value
            self._send(_SETTINGS, _ACK, 0, b"")
            self.settled.set()
        elif kind == _PING and not flags & _ACK:
            self._send(_PING, _ACK, 0, payload)
        elif kind == _WINDOW and not number:
            self._window += int.from_bytes(payload, "big")
        elif kind == _WINDOW and number in self._windows:
            self._windows[number] += int.from_bytes(payload, "big")
        elif kind == _RESET or (kind in {_DATA, _HEADERS} and flags & _END_STREAM):
            self._windows.pop(number, None)

    def _room(self, number: int) -> int:
        """Bytes that may be sent; negative once the call has ended."""
        return min(self._window, self._windows[number]) if number in self._windows else -1

    def _send(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        self._writer.write(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", number))
        self._writer.write(payload)


@asynccontextmanager
async def connection(address: str, authority: bytes, source: str = "127.0.0.1") -> AsyncIterator[Connection]:
    """A connection with TLS from an address of this machine; nothing is shown on it."""
    tls = ssl.create_default_context(cadata=authority.decode())
    tls.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(
        host, int(port), ssl=tls, server_hostname=SERVER_NAME, local_addr=(source, 0)
    )
    it = Connection(reader, writer)
    reading = asyncio.create_task(it.read(), name="raw connection")
    try:
        it.greet()
        await it.settled.wait()
        yield it
    finally:
        writer.transport.abort()
        await reading


def framed(message: bytes, length: int | None = None, *, compressed: bool = False) -> bytes:
    """A message as gRPC sends it, which may say another length than it has."""
    return bytes([compressed]) + (len(message) if length is None else length).to_bytes(4, "big") + message


def _text(text: str) -> bytes:
    """A string of a header, as it is."""
    data, most = text.encode(), 127
    if len(data) < most:
        return bytes([len(data)]) + data
    left, length = len(data) - most, bytes([most])
    while left >= 128:
        length, left = length + bytes([left % 128 + 128]), left // 128
    return length + bytes([left]) + data
