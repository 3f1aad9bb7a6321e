"""A client of SFTP, version 3, with many requests under way at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from muster.client.files.byte_stream import ByteStream
from muster.client.files.packets import (
    SFTP_VERSION,
    FileAttributes,
    PacketError,
    PacketReader,
    SftpAnswer,
    SftpKind,
    SftpStatus,
    Unpacker,
    extensions_of,
    fields_of,
    names_of,
    packed_attributes,
    packed_number,
    packed_text,
    packet,
    status_of,
)
from muster.client.files.transfer_error import FilesLostError, RemoteFileError
from muster.domain.errors import MusterError

LARGEST_PIECE_READ = 128 * 1024
"""Bytes that are asked for at once; the server gives no more."""

LARGEST_PIECE_WRITTEN = 252 * 1024
"""Bytes that are written at once: whole pages, which fit into one frame of an attachment with what is around them."""

MOST_PIECES = 64
"""Pieces of files that are under way at once: enough for 100 MB/s where an answer takes 80 ms."""

_WAITING_PACKETS = 16
"""Requests that wait for the stream, beside those that are being written."""

_WRITTEN_TOGETHER = 64 * 1024
"""Bytes up to which small requests are written as one piece, as each piece costs much on its way through the relay."""

_LAST_WORDS = 2.0
"""Seconds in which the writer may end its packet when the client is left."""

_HANDLE_SIZE = 256

Answering = asyncio.Future[SftpAnswer]


class SftpClient:
    """Asks for files; any number of tasks may at once. Paths are bytes, as the other side has them.

    Whatever is refused raises RemoteFileError. Any other MusterError says that nothing can be asked any more.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._reader = PacketReader()
        self._asked: dict[int, Answering] = {}
        self._last = 0
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(_WAITING_PACKETS)
        self._lost: MusterError | None = None
        self._ended = asyncio.Event()
        self.extensions: frozenset[str] = frozenset()
        """Names of what the other side can beside SFTP itself."""
        self.pieces = asyncio.Semaphore(MOST_PIECES)
        """Room for pieces of files under way, over all files."""

    async def begin(self, kind: SftpKind, *parts: bytes) -> Answering:
        """Ask something, and wait only until it may be sent; the answer comes later."""
        if self._lost is not None:
            raise self._lost
        self._last = (self._last + 1) % 2**32
        number = self._last
        answering: Answering = asyncio.get_running_loop().create_future()
        self._asked[number] = answering
        putting = packet(kind, number, *parts)
        try:
            self._waiting.put_nowait(putting)
        except asyncio.QueueFull:
            try:
                await self._waiting.put(putting)
            except BaseException:
                self._asked.pop(number, None)
                raise
            if self._lost is not None:  # nobody writes what was put there
                self._asked.pop(number, None)
                raise self._lost from None
        return answering

    async def ask(self, path: bytes, kind: SftpKind, *parts: bytes) -> SftpAnswer:
        """The answer to a request about a file."""
        return accepted(await (await self.begin(kind, *parts)), path)

    async def open(self, path: bytes, flags: int, mode: int | None = None) -> bytes:
        """A handle of a file."""
        attributes = packed_attributes(FileAttributes(mode=mode))
        answer = await self.ask(path, SftpKind.OPEN, packed_text(path), packed_number(flags), attributes)
        return handle_in(answer, path)

    async def open_directory(self, path: bytes) -> bytes:
        """A handle of a directory."""
        return handle_in(await self.ask(path, SftpKind.OPENDIR, packed_text(path)), path)

    async def names(self, path: bytes, handle: bytes) -> list[tuple[bytes, FileAttributes]]:
        """More names of a directory; nothing at its end."""
        answer = await (await self.begin(SftpKind.READDIR, packed_text(handle)))
        with understood():
            return [] if is_end(answer, path) else names_of(accepted(answer, path))

    async def close(self, path: bytes, handle: bytes) -> None:
        """Close a file or a directory."""
        await self.ask(path, SftpKind.CLOSE, packed_text(handle))

    async def look(self, path: bytes, *, follow: bool) -> FileAttributes | None:
        """What stands at a path; None: nothing."""
        kind = SftpKind.STAT if follow else SftpKind.LSTAT
        answer = await (await self.begin(kind, packed_text(path)))
        with understood():
            status = status_of(answer)
            if status is not None and status.code == SftpStatus.NO_SUCH_FILE:
                return None
            return fields_of(accepted(answer, path), SftpKind.ATTRS).attributes()

    async def link_target(self, path: bytes) -> bytes:
        """Where a link leads."""
        answer = await self.ask(path, SftpKind.READLINK, packed_text(path))
        with understood():
            names = names_of(answer)
        return names[0][0] if names else b""

    async def extended(self, path: bytes, name: str, *parts: bytes) -> SftpAnswer:
        """The answer to a request that SFTP itself does not have."""
        return await self.ask(path, SftpKind.EXTENDED, packed_text(name.encode()), *parts)

    async def listen(self) -> None:
        """Take in answers until the stream ends; nothing is answered any more then."""
        try:
            while data := await self._stream.read():
                for answer in self._reader.feed(data):
                    self._take(answer)
            self.lose(FilesLostError("the server of files has ended"))
        except PacketError as error:
            self.lose(FilesLostError(f"what serves the files there speaks no SFTP: {error}"))
        except MusterError as error:
            self.lose(error)

    async def speak(self) -> None:
        """Write what is asked, whole packets alone: a task that is cancelled leaves no part of one."""
        while True:
            packets = [await self._waiting.get()]
            size = len(packets[0])
            while size < _WRITTEN_TOGETHER and not self._waiting.empty():
                packets.append(self._waiting.get_nowait())
                size += len(packets[-1])
            await self._stream.write(packets[0] if len(packets) == 1 else b"".join(packets))
            for _ in packets:
                self._waiting.task_done()

    async def greet(self) -> None:
        """Say the version, and hear that of the other side."""
        first: Answering = asyncio.get_running_loop().create_future()
        self._asked[SFTP_VERSION] = first
        self._last = SFTP_VERSION
        await self._waiting.put(packet(SftpKind.INIT, SFTP_VERSION))
        with understood():
            self.extensions = extensions_of(await first)

    async def settle(self) -> None:
        """Wait until what was asked is written, or nothing is answered any more."""
        writing = asyncio.ensure_future(self._waiting.join())
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((writing, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            writing.cancel()
            ended.cancel()

    def lose(self, error: MusterError) -> None:
        """Nothing is answered any more; whoever waits, or asks, hears why."""
        self._lost = self._lost or error
        self._ended.set()
        asked, self._asked = self._asked, {}
        for each in asked.values():
            if not each.done():
                each.set_exception(self._lost)
                each.exception()  # nobody may wait for it, which is no fault
        while not self._waiting.empty():
            self._waiting.get_nowait()
            self._waiting.task_done()

    def _take(self, answer: SftpAnswer) -> None:
        number = SFTP_VERSION if answer.kind == SftpKind.VERSION else answer.id
        answering = self._asked.pop(number, None)
        if answering is None:
            raise PacketError(f"an answer came to request {answer.id}, which was not asked")
        if not answering.done():  # whoever asked may have gone away
            answering.set_result(answer)


@asynccontextmanager
async def sftp_over(stream: ByteStream) -> AsyncIterator[SftpClient]:
    """A client over a stream, which is closed in the end. Raises FilesLostError where no SFTP is spoken there."""
    client = SftpClient(stream)
    loop = asyncio.get_running_loop()
    listening = loop.create_task(_listen(client), name="files: listen")
    speaking = loop.create_task(_speak(client), name="files: speak")
    try:
        await client.greet()
        yield client
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await client.settle()
        for task in (listening, speaking):
            task.cancel()
        await asyncio.gather(listening, speaking, return_exceptions=True)
        client.lose(FilesLostError("these files are closed"))
        await stream.close()


async def _listen(client: SftpClient) -> None:
    try:
        await client.listen()
    except Exception as error:  # noqa: BLE001 - whoever waits for an answer has to hear of it, whatever it is
        client.lose(FilesLostError(str(error) or type(error).__name__))


async def _speak(client: SftpClient) -> None:
    try:
        await client.speak()
    except MusterError as error:
        client.lose(error)
    except OSError as error:
        client.lose(FilesLostError(f"the server of files reads no more: {error.strerror or error}"))


class understood:  # noqa: N801 - it reads as a word of the language
    """What cannot be understood inside ends as FilesLostError."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, PacketError):
            raise FilesLostError(f"what serves the files there speaks no SFTP: {error}") from error


def accepted(answer: SftpAnswer, path: bytes) -> SftpAnswer:
    """The answer, where it is no refusal. Raises RemoteFileError or FilesLostError."""
    with understood():
        status = status_of(answer)
    if status is not None and status.code != SftpStatus.OK:
        missing = status.code == SftpStatus.NO_SUCH_FILE
        raise RemoteFileError(text_of(path), status.text or f"refused with status {status.code}", missing=missing)
    return answer


def is_end(answer: SftpAnswer, path: bytes) -> bool:
    """Whether there is no more to read. Raises RemoteFileError or FilesLostError for other refusals."""
    with understood():
        status = status_of(answer)
    if status is not None and status.code == SftpStatus.AT_END:
        return True
    accepted(answer, path)
    return False


def handle_in(answer: SftpAnswer, path: bytes) -> bytes:
    """The handle that an answer brings."""
    with understood():
        return fields_of(accepted(answer, path), SftpKind.HANDLE).string(_HANDLE_SIZE)


def fields_in(answer: SftpAnswer, kind: SftpKind) -> Unpacker:
    """The body of an answer of this kind. Raises FilesLostError."""
    with understood():
        return fields_of(answer, kind)


def text_of(path: bytes) -> str:
    """A path as text; bytes that are no UTF-8 are lone surrogates."""
    return path.decode("utf-8", "surrogateescape")
