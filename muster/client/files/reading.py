"""Contents of files in executions: read with many requests under way, and hashed there."""

from collections import deque
from contextlib import suppress

from muster.client.files.content_hash import ContentHash, HashedRange
from muster.client.files.packets import OpenFlag, SftpAnswer, SftpKind, packed_number, packed_text
from muster.client.files.sftp import LARGEST_PIECE_READ, Answering, SftpClient, fields_in, is_end, text_of, understood
from muster.client.files.transfer_error import FilesLostError, RemoteFileError
from muster.domain.errors import MusterError

HASH_EXTENSION = "hash@muster"


class RemoteReading:
    """Reads an open file, piece by piece, and asks for the next ones meanwhile."""

    def __init__(self, client: SftpClient, path: bytes, handle: bytes, size: int) -> None:
        """`size` bytes are read; 0: to the end, which is where the kernel says so, as files of /proc have no size."""
        self._client = client
        self._path = path
        self._handle = packed_text(handle)
        self._size = size
        self._asked = 0
        """The place up to which pieces are asked for."""
        self._read = 0
        self._under_way: deque[tuple[int, Answering]] = deque()
        """Pieces that are asked for, with their sizes."""

    async def next(self) -> bytes:
        """The next piece; nothing at the end. Raises RemoteFileError where the file ends before its size."""
        if not self._size:
            piece = await self._piece(LARGEST_PIECE_READ)
            self._read += len(piece)
            return piece
        if self._read == self._size:
            return b""
        await self._ask()
        length, answering = self._under_way.popleft()
        try:
            piece = self._taken(await answering, length)
        finally:
            self._client.pieces.release()
        while piece and len(piece) < length:  # the server may give less than it is asked for
            more = await self._piece(length - len(piece), len(piece))
            if not more:
                break
            piece += more
        if len(piece) < length:
            raise RemoteFileError(text_of(self._path), "it became shorter while it was copied")
        self._read += length
        return piece

    def abandon(self) -> None:
        """Take no more pieces."""
        for _, answering in self._under_way:
            answering.cancel()
            self._client.pieces.release()
        self._under_way.clear()

    async def _ask(self) -> None:
        """Ask for as many pieces as there is room for, and for one in any case."""
        while self._asked < self._size and not (self._under_way and self._client.pieces.locked()):
            length = min(LARGEST_PIECE_READ, self._size - self._asked)
            await self._client.pieces.acquire()
            try:
                answering = await self._begin(self._asked, length)
            except BaseException:
                self._client.pieces.release()
                raise
            self._asked += length
            self._under_way.append((length, answering))

    async def _piece(self, length: int, ahead: int = 0) -> bytes:
        return self._taken(await (await self._begin(self._read + ahead, length)), length)

    async def _begin(self, offset: int, length: int) -> Answering:
        place = packed_number(offset, 8) + packed_number(length)
        return await self._client.begin(SftpKind.READ, self._handle, place)

    def _taken(self, answer: SftpAnswer, length: int) -> bytes:
        if is_end(answer, self._path):
            return b""
        with understood():
            data = fields_in(answer, SftpKind.DATA).string(length)
        if not data:
            raise FilesLostError(f"{text_of(self._path)}: an answer without data came before the end of the file")
        return data


async def hash_told(client: SftpClient, path: bytes, offset: int, length: int) -> HashedRange:
    """What a file holds from an offset on; length 0: to its end. Where the server cannot tell it, the file is read."""
    if HASH_EXTENSION not in client.extensions:
        return await _hash_read(client, path, offset, length)
    place = packed_number(offset, 8) + packed_number(length, 8)
    answer = await client.extended(path, HASH_EXTENSION, packed_text(path), place)
    with understood():
        fields = fields_in(answer, SftpKind.EXTENDED_REPLY)
        return HashedRange(size=fields.number(8), value=fields.number(8))


async def _hash_read(client: SftpClient, path: bytes, offset: int, length: int) -> HashedRange:
    handle = await client.open(path, OpenFlag.FOR_READING)
    try:
        content, at = ContentHash(), 0
        while not length or at < length:
            wanted = min(LARGEST_PIECE_READ, length - at) if length else LARGEST_PIECE_READ
            place = packed_number(offset + at, 8) + packed_number(wanted)
            answer = await (await client.begin(SftpKind.READ, packed_text(handle), place))
            if is_end(answer, path):
                break
            with understood():
                piece = fields_in(answer, SftpKind.DATA).string(wanted)
            if not piece:
                break
            content.update(piece)
            at += len(piece)
        return content.so_far
    finally:
        with suppress(MusterError):  # the handle ends with the stream
            await client.close(path, handle)
