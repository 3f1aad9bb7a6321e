"""Packets of SFTP, version 3: what is asked, as bytes, and what is answered, as values.

Nothing that is answered is trusted.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

LARGEST_ANSWER = 256 * 1024 + 1024
"""Bytes of the largest packet that the other side may send."""

LONGEST_FILE_NAME = 255
"""Bytes of one name in a directory, as Linux has it."""

MOST_REFUSAL_TOLD = 256
"""Characters of a text of the other side that are shown."""

_HEAD = struct.Struct(">IB")
_NUMBER = struct.Struct(">I")


class SftpKind(IntEnum):
    """What a packet is."""

    INIT = 1
    VERSION = 2
    OPEN = 3
    CLOSE = 4
    READ = 5
    WRITE = 6
    LSTAT = 7
    SETSTAT = 9
    FSETSTAT = 10
    OPENDIR = 11
    READDIR = 12
    REMOVE = 13
    MKDIR = 14
    RMDIR = 15
    STAT = 17
    READLINK = 19
    SYMLINK = 20
    STATUS = 101
    HANDLE = 102
    DATA = 103
    NAME = 104
    ATTRS = 105
    EXTENDED = 200
    EXTENDED_REPLY = 201


class SftpStatus(IntEnum):
    """How a request ended, in the few words of SFTP."""

    OK = 0
    AT_END = 1
    NO_SUCH_FILE = 2
    NOT_ALLOWED = 3
    FAILURE = 4
    BAD_MESSAGE = 5
    UNSUPPORTED = 8


class OpenFlag(IntEnum):
    """How a file is opened."""

    FOR_READING = 1
    FOR_WRITING = 2
    CREATING = 8
    EMPTYING = 16
    ONLY_NEW = 32


class PacketError(ValueError):
    """The other side sent what is no answer of SFTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SftpAnswer:
    """One packet of the other side."""

    kind: int
    id: int
    """The request that it answers; the version, where it is the first packet."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAttributes:
    """What is told of a file; None: nothing."""

    size: int | None = None
    mode: int | None = None
    changed: int | None = None
    """Seconds since 1970."""


class PacketReader:
    """Cuts a stream of bytes into packets."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, data: bytes) -> list[SftpAnswer]:
        """All packets that are whole now. Raises PacketError."""
        self._waiting += data
        found, at = [], 0
        while len(self._waiting) - at >= _NUMBER.size:
            (size,) = _NUMBER.unpack_from(self._waiting, at)
            if not _HEAD.size <= size <= LARGEST_ANSWER:
                raise PacketError(f"a packet of {size} bytes came")
            if len(self._waiting) - at < _NUMBER.size + size:
                break
            kind, number = struct.unpack_from(">BI", self._waiting, at + 4)
            with memoryview(self._waiting) as view:
                body = bytes(view[at + 9 : at + 4 + size])
            found.append(SftpAnswer(kind=kind, id=number, body=body))
            at += 4 + size
        del self._waiting[:at]
        return found


class Unpacker:
    """Takes values from the front of a body, one after the other. All methods raise PacketError."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def number(self, size: int = 4) -> int:
        """An unsigned number of so many bytes."""
        return int.from_bytes(self._taken(size), "big")

    def string(self, longest: int = LARGEST_ANSWER) -> bytes:
        """Bytes behind their length."""
        size = self.number()
        if size > longest:
            raise PacketError(f"a text of {size} bytes came where {longest} are the most")
        return self._taken(size)

    def attributes(self) -> FileAttributes:
        """What is told of a file."""
        flags = self.number()
        size = self.number(8) if flags & 1 else None
        if flags & 2:
            self._taken(8)
        mode = self.number() if flags & 4 else None
        changed = None
        if flags & 8:
            self._taken(4)
            changed = self.number()
        if flags & 0x80000000:
            for _ in range(self.number()):
                self.string()
                self.string()
        return FileAttributes(size=size, mode=mode, changed=changed)

    @property
    def left(self) -> int:
        """Bytes that have not been taken."""
        return len(self._body) - self._at

    def _taken(self, size: int) -> bytes:
        if self.left < size:
            raise PacketError("a packet ends too early")
        self._at += size
        return self._body[self._at - size : self._at]


def packed_text(data: bytes) -> bytes:
    """Bytes behind their length."""
    return _NUMBER.pack(len(data)) + data


def packed_number(value: int, size: int = 4) -> bytes:
    """An unsigned number of so many bytes."""
    return value.to_bytes(size, "big")


def packed_attributes(attributes: FileAttributes) -> bytes:
    """Attributes that a file is to have."""
    flags, parts = 0, []
    if attributes.size is not None:
        flags |= 1
        parts.append(packed_number(attributes.size, 8))
    if attributes.mode is not None:
        flags |= 4
        parts.append(packed_number(attributes.mode))
    if attributes.changed is not None:
        flags |= 8
        at = min(max(attributes.changed, 0), 2**32 - 1)
        parts.append(packed_number(at) * 2)
    return packed_number(flags) + b"".join(parts)


def packet(kind: SftpKind, number: int, *parts: bytes) -> bytes:
    """A whole request."""
    body = b"".join(parts)
    return struct.pack(">IBI", len(body) + 5, kind, number) + body


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """How a request ended."""

    code: int
    text: str


def status_of(answer: SftpAnswer) -> StatusAnswer | None:
    """How a request ended, where that is all of the answer. Raises PacketError."""
    if answer.kind != SftpKind.STATUS:
        return None
    fields = Unpacker(answer.body)
    code = fields.number()
    text = fields.string().decode(errors="replace")[:MOST_REFUSAL_TOLD] if fields.left else ""
    return StatusAnswer(code=code, text=text)


def fields_of(answer: SftpAnswer, kind: SftpKind) -> Unpacker:
    """The body of an answer of this kind. Raises PacketError."""
    if answer.kind != kind:
        raise PacketError(f"a packet of kind {answer.kind} came where {kind.name} was awaited")
    return Unpacker(answer.body)


def extensions_of(answer: SftpAnswer) -> frozenset[str]:
    """Names of what the other side can beside SFTP itself, from its first packet. Raises PacketError."""
    if answer.kind != SftpKind.VERSION:
        raise PacketError(f"the first packet is of kind {answer.kind}, which is no SFTP")
    if answer.id != SFTP_VERSION:
        raise PacketError(f"version {answer.id} of SFTP is spoken there, and {SFTP_VERSION} here")
    fields, names = Unpacker(answer.body), set()
    while fields.left:
        names.add(fields.string().decode(errors="replace"))
        fields.string()
    return frozenset(names)


def names_of(answer: SftpAnswer) -> list[tuple[bytes, FileAttributes]]:
    """Names with what is told of each, from one answer. Raises PacketError."""
    fields = fields_of(answer, SftpKind.NAME)
    found = []
    for _ in range(fields.number()):
        name = fields.string()
        fields.string()
        found.append((name, fields.attributes()))
    return found


SFTP_VERSION = 3
