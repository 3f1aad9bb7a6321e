"""The mover: `python -m agent.data.mover.program` moves objects between stores and files of this node for the agent.

Every line on standard input is a question, every line on standard output an answer (`agent.data.mover.messages`). What
opens a store is in the memory of this process alone, which leaves no core dumps, and into which root alone may look. It
ends when standard input does, with the agent or because there is nothing more to move.
"""

import asyncio
import errno
import fcntl
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent.data.beside import each_beside
from agent.data.cache import ArrivingInput
from agent.data.left_files import LeftFile
from agent.data.mover.answering import AnsweredWork, Send, answer_agent, write_all
from agent.data.mover.messages import (
    BucketPart,
    MoverAsk,
    access_heard,
    object_heard,
    object_said,
    part_heard,
)
from muster.domain.data.buckets.bucket_url import BucketUrl
from muster.domain.data.buckets.listing import StoredObject
from muster.transfer.buckets import BucketWriter, ObjectBucket
from muster.transfer.store_access import StoreAccess

READ_PART = 8 * 1024 * 1024
"""Bytes of an object in one question to its store."""
PARTS_AHEAD = 4
"""Parts of one object that are asked for at the same time."""
PARTS_IN_MEMORY = 16
"""Parts of all objects that are in memory or on their way."""

_BUCKETS_KEPT = 16
_WRITTEN_ANEW = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def main() -> None:
    """Serve standard input until it ends."""
    answer_agent(MoverWork)


class MoverWork(AnsweredWork):
    """What the mover has been asked and has not answered yet."""

    def __init__(self, send: Send) -> None:
        super().__init__(send)
        self._turns = asyncio.Semaphore(PARTS_IN_MEMORY)
        self._buckets: dict[tuple[StoreAccess, str], ObjectBucket] = {}
        """Buckets that were asked before, whose connections may still be open."""

    async def done(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question. Raises BucketRefusedError, BucketAwayError or OSError."""
        match asked["ask"]:
            case MoverAsk.LIST:
                return await self._list(asked)
            case MoverAsk.STORE:
                return await self._store(number, asked)
            case MoverAsk.READ:
                return await self._read(number, asked)
            case MoverAsk.REMOVE:
                bucket = await self._bucket(asked)
                await each_beside(asked["keys"], PARTS_AHEAD, bucket.remove)
                return {}
            case _:
                return await self._fetch(number, asked)

    async def _store(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        directory, path, owner = asked["file"]
        file = LeftFile(Path(directory), path, owner)
        source = SentFile(file, asked["size"], asked["sha256"], lambda sent: self.arrived(number, sent))
        writer = BucketWriter(await self._bucket(asked))
        await writer.write(asked["key"], asked["size"], source.pieces)
        return {}

    async def _list(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        url = BucketUrl(scheme=access_heard(asked["access"]).scheme, bucket=asked["bucket"], key=asked["key"])
        reader = await self._bucket(asked)
        listing = await reader.listed(url)
        return {"listed": [object_said(each) for each in listing.objects]}

    async def _fetch(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        wanted = object_heard(asked["object"])
        reader = await self._bucket(asked)
        part = await asyncio.to_thread(_part, Path(asked["part"]), wanted)
        try:
            await self._fill(part, wanted, reader, lambda: self.arrived(number, part.offset))
            await asyncio.to_thread(part.sync)
            return {"sha256": part.sha256}
        finally:
            part.close()

    async def _read(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        reader = await self._bucket(asked)
        into = await asyncio.to_thread(os.open, asked["into"], _WRITTEN_ANEW)
        there = 0
        try:
            async with aclosing(self._in_order(reader, _cut(map(part_heard, asked["parts"])))) as came:
                async for data in came:
                    await asyncio.to_thread(write_all, into, data)
                    there += len(data)
                    self.arrived(number, there)
        finally:
            os.close(into)
        return {}

    async def _fill(
        self, part: ArrivingInput, wanted: StoredObject, reader: ObjectBucket, arrived: Callable[[], None]
    ) -> None:
        """Have all of an object in its file."""
        arrived()
        rest = _cut([BucketPart(wanted, part.offset, wanted.size)])
        async with aclosing(self._in_order(reader, rest)) as came:
            async for data in came:
                await asyncio.to_thread(part.write, data)
                arrived()

    async def _in_order(self, reader: ObjectBucket, parts: Iterator[BucketPart]) -> AsyncGenerator[bytes, None]:
        """Parts of objects one after the other, which are asked for beside each other."""
        ahead: deque[asyncio.Task[bytes]] = deque()
        try:
            while True:
                while len(ahead) < PARTS_AHEAD and (part := next(parts, None)) is not None:
                    ahead.append(asyncio.create_task(self._part_of(reader, part)))
                if not ahead:
                    return
                yield await ahead[0]
                ahead.popleft()
                self._turns.release()
        finally:
            for task in ahead:
                await self._leave(task)

    async def _part_of(self, reader: ObjectBucket, part: BucketPart) -> bytes:
        """A part of an object, for which there is a turn until it is written."""
        await self._turns.acquire()
        try:
            return await reader.read(part.object, part.start, part.end)
        except BaseException:
            self._turns.release()
            raise

    async def _leave(self, task: asyncio.Task[bytes]) -> None:
        """Have a part come no more; one that has come gives its turn back."""
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            self._turns.release()

    async def _bucket(self, asked: Mapping[str, Any]) -> ObjectBucket:
        place = access_heard(asked["access"]), asked["bucket"]
        if place not in self._buckets:
            if len(self._buckets) >= _BUCKETS_KEPT:
                self._buckets.clear()
            self._buckets[place] = ObjectBucket(*place)
        bucket = self._buckets[place]
        await bucket.check_place()
        return bucket


class SentFile:
    """A file of an execution on its way to a store, which must still hold what it held when it was read."""

    def __init__(self, file: LeftFile, size: int, digest: str, told: Callable[[int], None]) -> None:
        self._file = file
        self._size = size
        self._digest = digest
        self._told = told

    async def pieces(self, length: int) -> AsyncIterator[bytes]:
        """All of it in pieces of such a length. Raises OSError, before the last one, where it holds something else."""
        found, offset = sha256(), 0
        while offset < self._size:
            piece = await asyncio.to_thread(self._file.read, offset, min(length, self._size - offset))
            await asyncio.to_thread(found.update, piece)
            offset += len(piece)
            if not piece or (offset >= self._size and found.hexdigest() != self._digest):
                raise OSError(errno.ESTALE, "changes while it is sent", self._file.path)
            yield piece
            self._told(offset)


def _cut(parts: Iterable[BucketPart]) -> Iterator[BucketPart]:
    """The same in parts for each of which a store is asked once."""
    for each in parts:
        for start in range(each.start, each.end, READ_PART):
            yield BucketPart(each.object, start, min(start + READ_PART, each.end))


def _part(path: Path, wanted: StoredObject) -> ArrivingInput:
    """The file of an object with what is there of this version, and this process's alone. Raises OSError."""
    part = ArrivingInput(path)
    try:
        fcntl.flock(part.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if part.version != wanted.version or part.offset > wanted.size or not wanted.version.startswith('"'):
            part.begin_anew(wanted.version)
    except BaseException:
        part.close()
        raise
    return part


if __name__ == "__main__":
    main()
