"""Trees of executions as the server of files tells them: in one list where it can, else directory by directory."""

import asyncio
import errno
import os
from collections import deque
from contextlib import suppress
from stat import S_IFMT, S_ISLNK

from muster.client.files.packets import FileAttributes, SftpAnswer, SftpKind, packed_number, packed_text
from muster.client.files.sftp import SftpClient, fields_in, handle_in, is_end, text_of, understood
from muster.client.files.transfer_error import FilesLostError, FileTransferError, RemoteFileError
from muster.client.files.tree import (
    LARGEST_TREE,
    LONGEST_TREE_PATH,
    TOO_DEEP,
    EntryKind,
    InvalidTreeError,
    TreeEntry,
    TreeListing,
    kind_of,
    listing_of,
)
from muster.domain.errors import MusterError

LIST_EXTENSION = "list@muster"

_GOING_DOWN = 1
_LISTS_UNDER_WAY = 4
_KINDS = {"f": EntryKind.FILE, "d": EntryKind.DIRECTORY, "l": EntryKind.LINK, "o": EntryKind.OTHER}
_TROUBLE = "e"
_LATEST = 2**63
_LAST_ERROR = 4095
"""The largest number for an error that the kernel has."""


async def listed(client: SftpClient, path: bytes) -> TreeListing | None:
    """All that is at a path, and below it; None: nothing is there. Raises FileTransferError."""
    try:
        if LIST_EXTENSION in client.extensions:
            entries, troubles = await _list(client, path)
        else:
            entries, troubles = await _walk(client, path)
        return await asyncio.to_thread(listing_of, entries, troubles)
    except RemoteFileError as error:
        if error.missing:
            return None
        raise
    except InvalidTreeError as error:
        raise FilesLostError(f"{text_of(path)}: {error}") from error


async def _list(client: SftpClient, path: bytes) -> tuple[list[TreeEntry], dict[str, str]]:
    entries: list[TreeEntry] = []
    troubles: dict[str, str] = {}
    answer = await client.extended(path, LIST_EXTENSION, packed_text(path), packed_number(_GOING_DOWN))
    handle = handle_in(answer, path)
    try:
        asked = deque([await client.begin(SftpKind.READDIR, packed_text(handle)) for _ in range(_LISTS_UNDER_WAY)])
        while asked:
            answer = await asked.popleft()
            if is_end(answer, path):
                break
            entries += entries_of(answer, troubles)
            _refuse_too_many(entries, troubles)
            asked.append(await client.begin(SftpKind.READDIR, packed_text(handle)))
    finally:
        with suppress(MusterError):  # the handle ends with the stream
            await client.close(path, handle)
    return entries, troubles


def entries_of(answer: SftpAnswer, troubles: dict[str, str]) -> list[TreeEntry]:
    """The entries of one answer; what could not be looked at goes to the troubles, by path.

    Raises FilesLostError or InvalidTreeError.
    """
    entries: list[TreeEntry] = []
    with understood():
        fields = fields_in(answer, SftpKind.EXTENDED_REPLY)
        for _ in range(fields.number()):
            place = text_of(fields.string(LONGEST_TREE_PATH))
            kind, mode, size = chr(fields.number(1)), fields.number(), fields.number(8)
            changed, target = fields.number(8), text_of(fields.string(LONGEST_TREE_PATH))
            if kind == _TROUBLE:
                troubles[place] = error_text(mode)
                continue
            if changed >= _LATEST or kind not in _KINDS:
                raise InvalidTreeError(f"what is told of {place!r} cannot be")
            entries.append(
                TreeEntry(
                    path=place,
                    kind=_KINDS[kind],
                    mode=mode & 0o7777,
                    size=size if kind == "f" else 0,
                    changed_ns=changed,
                    target=target,
                )
            )
    return entries


async def _walk(client: SftpClient, path: bytes) -> tuple[list[TreeEntry], dict[str, str]]:
    found = await client.look(path, follow=True)
    if found is None:
        raise RemoteFileError(text_of(path), "no such file", missing=True)
    root = _entry("", found, b"")
    entries, troubles = [root], {}
    waiting = [root] if root.kind is EntryKind.DIRECTORY else []
    while waiting:
        above = waiting.pop()
        try:
            inside = await _inside(client, path, above.path)
        except RemoteFileError as error:
            if not above.path:
                raise
            troubles[above.path] = error.why
            continue
        entries += inside
        waiting += [each for each in inside if each.kind is EntryKind.DIRECTORY]
        _refuse_too_many(entries, troubles)
    return entries, troubles


async def _inside(client: SftpClient, root: bytes, directory: str) -> list[TreeEntry]:
    full = b"/".join((root, directory.encode("utf-8", "surrogateescape"))) if directory else root
    handle = await client.open_directory(full)
    found: list[TreeEntry] = []
    try:
        while names := await client.names(full, handle):
            for name, attributes in names:
                if name in {b".", b".."}:
                    continue
                path = f"{directory}/{text_of(name)}" if directory else text_of(name)
                is_link = S_ISLNK(attributes.mode or 0)
                target = await client.link_target(full + b"/" + name) if is_link else b""
                found.append(_entry(path, attributes, target))
    finally:
        with suppress(MusterError):  # as above
            await client.close(full, handle)
    return found


def _entry(path: str, told: FileAttributes, target: bytes) -> TreeEntry:
    mode = told.mode or 0
    kind = kind_of(mode)
    return TreeEntry(
        path=path,
        kind=kind,
        mode=mode & ~S_IFMT(mode) & 0o7777,
        size=(told.size or 0) if kind is EntryKind.FILE else 0,
        changed_ns=(told.changed or 0) * 1_000_000_000,
        target=text_of(target),
    )


def _refuse_too_many(entries: list[TreeEntry], troubles: dict[str, str]) -> None:
    if len(entries) + len(troubles) > LARGEST_TREE + 1:
        raise FileTransferError(f"more than {LARGEST_TREE} files are too many at once; copy parts of the directory")


def error_text(number: int) -> str:
    """The words for a number of the kernel, as the server tells them of what it could not look at."""
    if number == errno.ELOOP:
        return TOO_DEEP
    return os.strerror(number).lower() if number <= _LAST_ERROR else f"error {number}"
