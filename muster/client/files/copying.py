"""Carries out what a plan says, from one tree to another one, with many files under way at once."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from muster.client.files.content_hash import HashedRange, RangeHashes
from muster.client.files.file_tree import FileTree, NewFile
from muster.client.files.plan import NotCopied, TreePlan
from muster.client.files.transfer_error import FilesLostError, FileTransferError
from muster.client.files.tree import TreeEntry

FILES_AT_ONCE = 32
"""Files that are copied beside each other, so that small ones do not wait for one answer after the other."""

_E = TypeVar("_E")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferProgress:
    """How far a copy is."""

    files: int
    all_files: int
    size: int
    """Bytes so far."""
    all_size: int


OnTransfer = Callable[[TransferProgress], None]


def unnoticed(_: TransferProgress) -> None:
    """Nobody looks on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """What was done; all that was copied was compared with what the other side holds."""

    files: int = 0
    size: int = 0
    """Bytes of these files."""
    links: int = 0
    directories: int = 0
    """Directories that were made."""
    adjusted: int = 0
    removed: int = 0
    unchanged: int = 0
    left_out: tuple[NotCopied, ...] = ()
    """What is never copied: links that lead out of the directory, and devices."""
    failed: tuple[NotCopied, ...] = ()
    """What could not be read, or was changed while it was copied."""


class _UnreadableError(Exception):
    """A file of the source cannot be copied, which is no harm to others."""


class Copying:
    """One pass over a plan."""

    def __init__(
        self,
        source: FileTree,
        target: FileTree,
        *,
        times: bool = True,
        on_progress: OnTransfer = unnoticed,
    ) -> None:
        """Without `times` what is copied counts as changed now."""
        self._source = source
        self._target = target
        self._times = times
        self._on_progress = on_progress
        self._tokens = itertools.count(secrets.randbits(32))
        self._all_files = 0
        self._all_size = 0
        self._files = 0
        self._size = 0
        """Bytes that are under way or there."""
        self._copied = 0
        """Bytes of files that are there."""
        self._failed: list[NotCopied] = []

    async def run(self, plan: TreePlan) -> TransferResult:
        """Do it. Raises FileTransferError or OSError for the first thing that the target does not take."""
        self._all_files, self._all_size = len(plan.files), plan.size
        self._tell()
        await by_depth(plan.cleared, self._target.remove)
        await by_depth(plan.directories, lambda each: self._target.make_directory(each.path))
        await at_once(plan.files, self._copy)
        await at_once(plan.links, lambda each: self._target.make_link(each, self._token()))
        await at_once(plan.adjusted, self._adjust)
        await by_depth(plan.removed, self._target.remove)
        await by_depth(plan.finished, self._adjust)
        return TransferResult(
            files=self._files,
            size=self._copied,
            links=len(plan.links),
            directories=len(plan.directories),
            adjusted=len(plan.adjusted),
            removed=len(plan.removed),
            unchanged=plan.unchanged,
            left_out=plan.left_out,
            failed=(*plan.unread, *self._failed),
        )

    async def _copy(self, entry: TreeEntry) -> None:
        new = await self._target.new_file(entry.path, self._token())
        try:
            size = await self._transfer(entry, new)
            await new.finish(entry.mode, entry.changed if self._times else None)
            await new.commit()
        except _UnreadableError as error:
            self._failed.append(NotCopied(path=entry.path, why=str(error)))
            await new.discard()
            return
        except BaseException:
            await new.discard()
            raise
        self._files += 1
        self._copied += size
        self._tell()

    async def _transfer(self, entry: TreeEntry, new: NewFile) -> int:
        hashes, size = RangeHashes(), 0
        async with aclosing(_read(self._source, entry)) as pieces:
            async for piece in pieces:
                await new.write(piece)
                size += len(piece)
                self._size += len(piece)
                self._tell()
                for at, mine in hashes.update(piece):
                    await self._compare(entry, new, at, mine)
        for at, mine in hashes.last():
            await self._compare(entry, new, at, mine)
        return size

    async def _compare(self, entry: TreeEntry, new: NewFile, at: int, mine: HashedRange) -> None:
        """Ask both sides what they hold; whichever is on this machine has nothing to tell."""
        told = await self._source.told(entry.path, at, mine.size)
        if told is not None and told != mine:
            raise _UnreadableError("it changed while it was copied; copy it again")
        told = await new.told(at, mine.size)
        if told is not None and told != mine:
            raise FileTransferError(
                f"{self._target.name}: {entry.path or 'the file'} holds something else than was sent; it was dropped"
            )

    async def _adjust(self, entry: TreeEntry) -> None:
        await self._target.adjust(entry, entry.changed if self._times else None)

    def _token(self) -> str:
        return f"{next(self._tokens) % 2**32:08x}"

    def _tell(self) -> None:
        self._on_progress(
            TransferProgress(files=self._files, all_files=self._all_files, size=self._size, all_size=self._all_size)
        )


async def _read(source: FileTree, entry: TreeEntry) -> AsyncGenerator[bytes, None]:
    """The content of a file; what is wrong with it is told apart from what is wrong with the target."""
    try:
        async with aclosing(source.pieces(entry)) as pieces:
            async for piece in pieces:
                yield piece
    except FilesLostError:
        raise
    except FileTransferError as error:
        raise _UnreadableError(getattr(error, "why", str(error))) from error
    except OSError as error:
        raise _UnreadableError((error.strerror or str(error)).lower()) from error


async def at_once(entries: Iterable[_E], do: Callable[[_E], Awaitable[object]]) -> None:
    """Do something with each, several beside each other. Raises the first error alone, once all have stopped."""
    rest = iter(entries)

    async def work() -> None:
        for each in rest:
            await do(each)

    first = next(rest, None)
    if first is None:
        return
    rest = itertools.chain((first,), rest)
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(FILES_AT_ONCE):
                group.create_task(work(), name=f"files: worker {number}")
    except BaseExceptionGroup as group_error:
        raise _first(group_error) from None


async def by_depth(entries: Sequence[TreeEntry], do: Callable[[TreeEntry], Awaitable[object]]) -> None:
    """Do something with each in their order, those of one depth beside each other."""
    for _, level in groupby(entries, key=lambda each: each.path.count("/") if each.path else -1):
        await at_once(list(level), do)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
