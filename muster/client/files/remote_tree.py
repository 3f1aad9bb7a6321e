"""Trees of files in executions, over SFTP."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress

from muster.client.files.content_hash import HashedRange
from muster.client.files.ignored import without_ignored
from muster.client.files.packets import (
    FileAttributes,
    OpenFlag,
    SftpAnswer,
    SftpKind,
    packed_attributes,
    packed_number,
    packed_text,
)
from muster.client.files.reading import RemoteReading, hash_told
from muster.client.files.remote_listing import listed
from muster.client.files.sftp import (
    LARGEST_PIECE_WRITTEN,
    Answering,
    SftpClient,
    accepted,
    text_of,
)
from muster.client.files.transfer_error import RemoteFileError
from muster.client.files.tree import KEPT_MODE, EntryKind, TreeEntry, TreeListing, beside_name, kind_of
from muster.domain.errors import MusterError
from muster.transfer.ignore_rules import IgnoreRules

_RENAMES = "posix-rename@openssh.com"
_NEW = OpenFlag.FOR_WRITING | OpenFlag.CREATING | OpenFlag.ONLY_NEW
_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700
_LAST_TRY = 2.0
"""Seconds in which a file that was not finished is to be removed."""


class RemoteTree:
    """A tree in an execution; its path is relative to the working directory there, unless it is absolute."""

    def __init__(self, client: SftpClient, path: str, name: str) -> None:
        self._client = client
        self._path = path
        self.name = name

    def within(self, name: str) -> "RemoteTree":
        """The tree at a name in this one."""
        slash = "" if self.name.endswith(("/", ":")) else "/"
        return RemoteTree(self._client, text_of(self._full(name)), f"{self.name}{slash}{name}")

    async def kind(self) -> EntryKind | None:
        """What stands at the path of the tree, behind a link, too; None: nothing."""
        path = self._full("")
        found = await self._client.look(path, follow=True)
        return None if found is None else kind_of(found.mode or 0)

    async def listing(self, rules: IgnoreRules | None = None) -> TreeListing | None:
        """What is there, without what the rules leave out; None: nothing stands at the path of the tree."""
        found = await listed(self._client, self._full(""))
        return found if found is None or rules is None else without_ignored(found, rules)

    async def pieces(self, entry: TreeEntry) -> AsyncGenerator[bytes, None]:
        """The content of a file, as long as it was when it was listed; of one without a size, to its end."""
        path = self._full(entry.path)
        handle = await self._client.open(path, OpenFlag.FOR_READING)
        try:
            reading = RemoteReading(self._client, path, handle, entry.size)
            try:
                while piece := await reading.next():
                    yield piece
            finally:
                reading.abandon()
        finally:
            with suppress(MusterError):  # what was read is checked; the handle ends with the stream
                await self._client.close(path, handle)

    async def told(self, path: str, offset: int, length: int) -> HashedRange | None:
        """What the other side says that a file holds there."""
        return await hash_told(self._client, self._full(path), offset, length)

    async def hashed(self, path: str) -> HashedRange:
        """What a file holds."""
        return await hash_told(self._client, self._full(path), 0, 0)

    async def new_file(self, path: str, token: str) -> "RemoteNewFile":
        """A file that takes its place, or that of another one, once it is whole."""
        full, beside = self._full(path), self._beside(path, token)
        try:
            handle = await self._client.open(beside, _NEW, _PRIVATE_FILE)
        except asyncio.CancelledError:
            await _try(self._client, SftpKind.REMOVE, beside)  # asked after the other request, so done after it
            raise
        except RemoteFileError as error:
            raise RemoteFileError(text_of(full), error.why, missing=error.missing) from None
        return RemoteNewFile(self._client, full, beside, handle)

    async def make_directory(self, path: str) -> None:
        """Make a directory that only its owner may enter so far."""
        full = self._full(path)
        attributes = packed_attributes(FileAttributes(mode=_PRIVATE_DIRECTORY))
        await self._client.ask(full, SftpKind.MKDIR, packed_text(full), attributes)

    async def make_link(self, entry: TreeEntry, token: str) -> None:
        """Make a link, also in place of something that is no directory."""
        full, beside = self._full(entry.path), self._beside(entry.path, token)
        target = entry.target.encode("utf-8", "surrogateescape")
        try:
            await self._client.ask(full, SftpKind.SYMLINK, packed_text(target), packed_text(beside))
            await self._client.extended(full, _RENAMES, packed_text(beside), packed_text(full))
        except BaseException:
            await _try(self._client, SftpKind.REMOVE, beside)
            raise

    async def adjust(self, entry: TreeEntry, changed: int | None) -> None:
        """Give a file or a directory its mode, and a time of the last change where one is said."""
        full = self._full(entry.path)
        wanted = packed_attributes(FileAttributes(mode=entry.mode & KEPT_MODE, changed=changed))
        await self._client.ask(full, SftpKind.SETSTAT, packed_text(full), wanted)

    async def remove(self, entry: TreeEntry) -> None:
        """Remove a file, a link, or an empty directory."""
        full = self._full(entry.path)
        kind = SftpKind.RMDIR if entry.kind is EntryKind.DIRECTORY else SftpKind.REMOVE
        await self._client.ask(full, kind, packed_text(full))

    def _full(self, path: str) -> bytes:
        root = self._path or "."
        whole = f"{root.rstrip('/')}/{path}" if path else root
        return whole.encode("utf-8", "surrogateescape")

    def _beside(self, path: str, token: str) -> bytes:
        full = text_of(self._full(path))
        above, slash, name = full.rpartition("/")
        return f"{above}{slash}{beside_name(name, token)}".encode("utf-8", "surrogateescape")


class RemoteNewFile:
    """A file in an execution while it is written."""

    def __init__(self, client: SftpClient, path: bytes, beside: bytes, handle: bytes) -> None:
        self._client = client
        self._path = path
        self._beside = beside
        self._handle = packed_text(handle)
        self._at = 0
        self._under_way: deque[Answering] = deque()

    async def write(self, piece: bytes) -> None:
        """Take the next piece; it may be under way when this returns."""
        for start in range(0, len(piece), LARGEST_PIECE_WRITTEN):
            part = piece[start : start + LARGEST_PIECE_WRITTEN]
            await self._client.pieces.acquire()
            try:
                place = packed_number(self._at, 8)
                answering = await self._client.begin(SftpKind.WRITE, self._handle, place, packed_text(part))
            except BaseException:
                self._client.pieces.release()
                raise
            answering.add_done_callback(lambda _: self._client.pieces.release())
            self._under_way.append(answering)
            self._at += len(part)
            while self._under_way and self._under_way[0].done():
                self._accept(await self._under_way.popleft())

    async def told(self, offset: int, length: int) -> HashedRange | None:
        """What the other side says that was written there."""
        await self._written()
        return await hash_told(self._client, self._beside, offset, length)

    async def finish(self, mode: int, changed: int | None) -> None:
        """Write all that was taken, with this mode and this time of the last change; None: now."""
        wanted = packed_attributes(FileAttributes(mode=mode & KEPT_MODE, changed=changed))
        self._under_way.append(await self._client.begin(SftpKind.FSETSTAT, self._handle, wanted))
        self._under_way.append(await self._client.begin(SftpKind.CLOSE, self._handle))
        await self._written()

    async def commit(self) -> None:
        """Take the place."""
        await self._client.extended(self._path, _RENAMES, packed_text(self._beside), packed_text(self._path))

    async def discard(self) -> None:
        """Leave nothing, for as long as anybody answers."""
        for each in self._under_way:
            each.cancel()
        await _try(self._client, SftpKind.CLOSE, self._handle[4:])
        await _try(self._client, SftpKind.REMOVE, self._beside)

    async def _written(self) -> None:
        while self._under_way:
            self._accept(await self._under_way.popleft())

    def _accept(self, answer: SftpAnswer) -> None:
        accepted(answer, self._path)


async def _try(client: SftpClient, kind: SftpKind, subject: bytes) -> None:
    """Ask for something, whether it is done or not; also a task that is being cancelled may."""
    with suppress(MusterError, TimeoutError):
        async with asyncio.timeout(_LAST_TRY):
            await client.ask(subject, kind, packed_text(subject))
