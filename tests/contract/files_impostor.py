"""A server of files that lies: it answers what a test says, and is a stream for a client of ours."""

import asyncio
import struct
from collections.abc import Callable

from muster.client.files.packets import SftpKind, packed_number, packed_text

Answer = Callable[[int, bytes], bytes | None]
"""The kind and the body of an answer, from those of a request; None: none comes."""

EXTENSIONS = ("list@muster", "hash@muster", "posix-rename@openssh.com")


class Impostor:
    """Answers each request as a test says, from within the same program."""

    def __init__(self, answer: Answer, extensions: tuple[str, ...] = EXTENSIONS) -> None:
        self._answer = answer
        self._extensions = extensions
        self._asked = b""
        self._answers: asyncio.Queue[bytes] = asyncio.Queue()
        self.kinds: list[int] = []

    async def read(self) -> bytes:
        return await self._answers.get()

    async def write(self, data: bytes) -> None:
        self._asked += data
        while len(self._asked) >= 4:
            (size,) = struct.unpack_from(">I", self._asked)
            if len(self._asked) < 4 + size:
                return
            body, self._asked = self._asked[4 : 4 + size], self._asked[4 + size :]
            self.kinds.append(body[0])
            if body[0] == SftpKind.INIT:
                names = b"".join(packed_text(each.encode()) + packed_text(b"1") for each in self._extensions)
                self.say(bytes([SftpKind.VERSION]) + packed_number(3) + names)
            elif (answer := self._answer(body[0], body[5:])) is not None:
                self.say(answer[:1] + body[1:5] + answer[1:])

    async def close(self) -> None:
        self._answers.put_nowait(b"")

    def say(self, body: bytes) -> None:
        """Send a packet, whether it was asked for or not."""
        self.say_raw(packed_number(len(body)) + body)

    def say_raw(self, data: bytes) -> None:
        """Send bytes."""
        self._answers.put_nowait(data)


def status(code: int, text: str = "") -> bytes:
    return bytes([SftpKind.STATUS]) + packed_number(code) + packed_text(text.encode()) + packed_text(b"")


def handle() -> bytes:
    return bytes([SftpKind.HANDLE]) + packed_text(b"h")


def listed(*entries: tuple[bytes, bytes, int, bytes]) -> bytes:
    """An answer with entries: path, kind, size and target."""
    parts = [
        packed_text(path) + kind + packed_number(0o644) + packed_number(size, 8) + packed_number(0, 8) + packed_text(to)
        for path, kind, size, to in entries
    ]
    return bytes([SftpKind.EXTENDED_REPLY]) + packed_number(len(parts)) + b"".join(parts)
