"""The program that serves files, with a line to it on which a test says whole packets of SFTP."""

import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.contract.door_side import ANSWER_LIMIT, program

INIT = struct.pack(">IBI", 5, 1, 3)

READDIR, EXTENDED = 12, 200
STATUS, HANDLE, REPLY = 101, 102, 201
END_OF_LIST = 1


class NamedSocket(socket.socket):
    """A socket with the name that paramiko writes into its log."""

    def get_name(self) -> str:
        return "files"


@contextmanager
def served(directory: Path) -> Iterator[tuple[NamedSocket, "subprocess.Popen[bytes]"]]:
    """The program in a directory, at the other end of a socket."""
    path = directory / "muster-inside"
    shutil.copy(program(), path)
    one, there = socket.socketpair()
    with NamedSocket(fileno=one.detach()) as here, there:
        here.settimeout(ANSWER_LIMIT)
        server = subprocess.Popen((str(path), "files"), stdin=there.fileno(), stdout=there.fileno(), cwd=directory)
        there.close()
        try:
            yield here, server
        finally:
            here.close()
            server.kill()
            server.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a list."""

    path: str
    kind: str
    mode: int
    size: int
    changed: int
    target: str


class FilesRefusedError(Exception):
    """The answer is a status."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class FilesLine:
    """Asks one thing after the other."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._line.sendall(INIT)
        self.extensions = _extensions(self._packet())

    def ask(self, kind: int, body: bytes) -> bytes:
        """What is answered, with its kind as the first byte; raises FilesRefusedError for a status that is not good."""
        self._line.sendall(struct.pack(">IBI", 5 + len(body), kind, 7) + body)
        answer = self._packet()
        assert answer[1:5] == b"\0\0\0\7"
        if answer[0] == STATUS and answer[5:9] != b"\0\0\0\0":
            [size] = struct.unpack_from(">I", answer, 9)
            raise FilesRefusedError(int.from_bytes(answer[5:9], "big"), answer[13 : 13 + size].decode())
        return answer[:1] + answer[5:]

    def hash(self, path: str, offset: int = 0, length: int = 0) -> tuple[int, int]:
        """How many bytes were hashed, and to what."""
        answer = self.ask(EXTENDED, text("hash@muster") + text(path) + struct.pack(">QQ", offset, length))
        assert (answer[0], len(answer)) == (REPLY, 17)
        counted, value = struct.unpack(">QQ", answer[1:])
        return counted, value

    def opened(self, path: str, flags: int = 1) -> bytes:
        """A handle for a list."""
        answer = self.ask(EXTENDED, text("list@muster") + text(path) + struct.pack(">I", flags))
        assert answer[0] == HANDLE
        return answer[1:]

    def piece(self, handle: bytes) -> list[Entry]:
        """The next entries of a list; none: it has ended."""
        try:
            answer = self.ask(READDIR, handle)
        except FilesRefusedError as end:
            if end.code != END_OF_LIST:
                raise
            return []
        [count] = struct.unpack_from(">I", answer, 1)
        entries, at = [], 5
        for _ in range(count):
            path, at = _taken(answer, at)
            kind, mode, size, changed = struct.unpack_from(">cIQQ", answer, at)
            target, at = _taken(answer, at + 21)
            entry = Entry(path=path, kind=kind.decode(), mode=mode, size=size, changed=changed, target=target)
            entries.append(entry)
        assert answer[0] == REPLY
        assert at == len(answer)
        assert entries, "an answer has one entry at least"
        return entries

    def entries(self, path: str, flags: int = 1) -> list[Entry]:
        """A whole list."""
        handle, entries = self.opened(path, flags), []
        while piece := self.piece(handle):
            entries += piece
        return entries

    def _packet(self) -> bytes:
        [size] = struct.unpack(">I", self._bytes(4))
        return self._bytes(size)

    def _bytes(self, size: int) -> bytes:
        raw = b""
        while len(raw) < size:
            piece = self._line.recv(size - len(raw))
            assert piece, "the program has ended"
            raw += piece
        return raw


def text(value: str) -> bytes:
    """A string of SFTP."""
    raw = value.encode(errors="surrogateescape")
    return struct.pack(">I", len(raw)) + raw


def _taken(raw: bytes, at: int) -> tuple[str, int]:
    [size] = struct.unpack_from(">I", raw, at)
    return raw[at + 4 : at + 4 + size].decode(errors="surrogateescape"), at + 4 + size


def _extensions(version: bytes) -> dict[str, str]:
    assert version[:5] == b"\2\0\0\0\3"
    words, at = [], 5
    while at < len(version):
        word, at = _taken(version, at)
        words.append(word)
    return dict(zip(words[::2], words[1::2], strict=True))
