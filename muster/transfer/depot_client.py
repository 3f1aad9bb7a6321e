"""The depot as those see it who send folders to it, and fetch trees from it."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio

from muster.domain.data.swarm import ContentSpan
from muster.domain.data.tree import ContentObject, ContentTree, MalformedTreeError, read_content_tree, tree_name
from muster.domain.errors import MusterError, UnavailableError
from muster.rpc.channel import CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.status import ERRORS
from muster.rpc.v1 import depot_pb2 as pb
from muster.rpc.v1.depot_pb2_grpc import DepotServiceStub
from muster.transfer.folder import Folder, FolderError
from muster.transfer.objects import ArrivingObject, Filling, commit_all
from muster.trust.depot_ticket import DEPOT_TICKET_METADATA

SENT_AT_ONCE = 1024 * 1024
"""Bytes of data in one message."""

OBJECTS_AT_ONCE = 10_000
"""Objects in one message."""

DEPOT_CHANNEL_OPTIONS: Sequence[tuple[str, int]] = tuple(
    {**dict(CHANNEL_OPTIONS), "grpc.max_receive_message_length": 2 * SENT_AT_ONCE}.items()
)
"""Options of whoever dials the depot."""

DEPOT_SILENCE = 60.0
"""Seconds without a word of the depot after which it counts as gone."""

_SENT_AGAIN = 3
"""How often an object is sent that changes on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSent:
    """What came of sending a folder."""

    tree: str
    """The name of its tree."""
    size: int
    """Bytes of the canonical form of the tree."""
    new: int
    """Objects that the depot did not have."""
    sent: int
    """Bytes that were sent."""


class FileSource(Protocol):
    """A file that is read in a way of its own; its text is what people are told of it."""

    def read(self, offset: int, length: int) -> bytes:
        """A part of it; less where it has become shorter. Raises OSError."""
        ...


class _FilesOf(Mapping[str, Path]):
    """The files of a folder by what they hold; a path is only made for what is sent."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder.path
        self._paths = {each.content: each.path for each in folder.tree.entries if not each.is_link}

    def __getitem__(self, digest: str) -> Path:
        return self._folder / self._paths[digest]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


class DepotClient:
    """One ticket, and the depot that it is for."""

    def __init__(self, channel: grpc.aio.Channel, ticket: str, address: str) -> None:
        """`address` is for people, who are told which depot does not answer."""
        # Two kinds of stub have one name, which mypy cannot tell apart here.
        self._stub: Any = DepotServiceStub(channel)
        self._metadata = ((DEPOT_TICKET_METADATA, ticket),)
        self._address = address

    async def missing(self, objects: Sequence[ContentObject]) -> dict[str, int]:
        """Objects that the depot does not have, and how many bytes of each have arrived. Raises MusterError."""
        asked = (objects[at : at + OBJECTS_AT_ONCE] for at in range(0, len(objects), OBJECTS_AT_ONCE))
        requests = (
            pb.MissingRequest(
                objects=[pb.DepotObject(digest=bytes.fromhex(each.digest), size=each.size) for each in some]
            )
            for some in asked
        )
        found: dict[str, int] = {}
        async for answer in self._heard(self._stub.Missing(requests, metadata=self._metadata)):
            found |= {each.digest.hex(): each.begun for each in answer.missing}
        return found

    async def has_tree(self, digest: str) -> bool:
        """Whether the depot has a tree with all that it lists, and keeps it as if that came now. Raises MusterError."""
        asked = iter([pb.MissingRequest(tree=bytes.fromhex(digest))])
        async with aclosing(self._heard(self._stub.Missing(asked, metadata=self._metadata))) as answers:
            return any([answer.whole async for answer in answers])

    async def send(self, folder: Folder, told: Callable[[int, int], None] | None = None) -> FolderSent:
        """Send what the depot does not have of a folder, its tree last. Raises MusterError or OSError.

        `told` hears how many bytes of how many have been sent. One that has not changed is asked about as a whole.
        """
        about = folder.summary
        if folder.unchanged and await self.has_tree(about.digest):
            return FolderSent(tree=about.digest, size=about.size, new=0, sent=0)
        return await self.send_tree(folder.tree, _FilesOf(folder), told)

    async def send_tree(
        self,
        content: ContentTree,
        files: "Mapping[str, Path | FileSource]",
        told: Callable[[int, int], None] | None = None,
    ) -> FolderSent:
        """The same of a tree whose files are read otherwise: by what they hold, where they are read from."""
        form = content.form
        name = tree_name(form)
        tree = ContentObject(digest=name, size=len(form))
        objects = {each.digest: each for each in (*content.objects, tree)}
        new, sent = await self._send(objects, files, {name: form}, told)
        return FolderSent(tree=name, size=len(form), new=new, sent=sent)

    async def _send(
        self,
        objects: Mapping[str, ContentObject],
        files: "Mapping[str, Path | FileSource]",
        forms: Mapping[str, bytes],
        told: Callable[[int, int], None] | None,
    ) -> tuple[int, int]:
        """Send objects that the depot does not have: how many these were, and how many bytes were sent."""
        begun = await self.missing(tuple(objects.values()))
        sources = {digest: forms[digest] if digest in forms else files[digest] for digest in begun}
        sending = _Sending({digest: objects[digest] for digest in begun}, begun, sources, told)
        if begun:
            call = self._stub.Put(sending.requests(), metadata=self._metadata)
            async with aclosing(self._heard(call)) as answers:
                async for answer in answers:
                    for outcome in answer.outcomes:
                        sending.hear(outcome.digest.hex(), stored=outcome.stored, offset=outcome.offset)
            if sending.failed is not None:
                raise sending.failed
        return len(begun), sending.sent

    async def send_list(self, content: ContentTree) -> None:
        """Send a tree without what its files hold, which is elsewhere. Raises MusterError."""
        form = content.form
        tree = ContentObject(digest=tree_name(form), size=len(form))
        await self._send({tree.digest: tree}, {}, {tree.digest: form}, None)

    async def tree(self, digest: str, size: int) -> ContentTree:
        """A tree by its name and the bytes of its canonical form. Raises MusterError."""
        form = b"".join([data async for data in self.get([ContentSpan(digest=digest, offset=0, length=size)])])
        tree = read_content_tree(form)
        if tree.digest != digest:
            raise MalformedTreeError(f"the depot gave another tree than {digest}")
        return tree

    async def get(self, spans: Iterable[ContentSpan]) -> AsyncIterator[bytes]:
        """Parts of objects, one after the other, as one stream of bytes. Raises MusterError."""
        request = pb.GetRequest(
            spans=[
                pb.GetSpan(digest=bytes.fromhex(each.digest), offset=each.offset, length=each.length) for each in spans
            ]
        )
        async for answer in self._heard(self._stub.Get(request, metadata=self._metadata)):
            yield answer.data

    async def fill(self, arriving: Sequence[ArrivingObject], told: Callable[[int], None]) -> None:
        """Have objects whole and in their places, each from where it was left. Raises MusterError or OSError.

        `told` hears of bytes as they arrive.
        """
        lacking = [each for each in arriving if each.offset < each.size]
        filling = Filling(lacking)
        if lacking:
            async for data in self.get([each.span for each in lacking]):
                await asyncio.to_thread(filling.take, data)
                told(len(data))
        for each in arriving:
            each.check()
        await asyncio.to_thread(commit_all, arriving)

    async def _heard(self, call: Any) -> AsyncGenerator[Any, None]:  # noqa: ANN401 - calls of three kinds
        """The answers of a call, as long as the depot is not silent. Raises MusterError."""
        try:
            while True:
                async with asyncio.timeout(DEPOT_SILENCE):
                    answer = await call.read()
                if answer is grpc.aio.EOF:
                    return
                yield answer
        except TimeoutError:
            raise _error(
                grpc.StatusCode.UNAVAILABLE, f"it said nothing for {DEPOT_SILENCE:.0f} s", self._address
            ) from None
        except grpc.aio.AioRpcError as error:
            raise _error(error.code(), error.details() or "", self._address) from error
        finally:
            call.cancel()


@asynccontextmanager
async def reaching_depot(
    told: str, ticket: str, coordinator: str, authority: bytes | None
) -> AsyncGenerator[DepotClient, None]:
    """The depot that a coordinator has told of, over a channel that is closed at the end.

    `told` is `host:port`; without a host it is on that of `coordinator`. `authority` is whom one believes there.
    """
    host, _, port = told.rpartition(":")
    address = f"{host or coordinator.rpartition(':')[0]}:{port}"
    async with open_channel(address, Credentials(authority=authority), DEPOT_CHANNEL_OPTIONS) as channel:
        yield DepotClient(channel, ticket, address)


class _Sending:
    """Objects on their way: small ones share a message, and what the depot has otherwise is sent again."""

    def __init__(
        self,
        objects: Mapping[str, ContentObject],
        begun: Mapping[str, int],
        sources: Mapping[str, Path | FileSource | bytes],
        told: Callable[[int, int], None] | None,
    ) -> None:
        self._objects = objects
        self._sources = sources
        self._waiting = deque(begun.items())
        self._left = set(objects)
        self._tries = dict.fromkeys(objects, 0)
        self._told = told
        self._total = sum(objects[digest].size - offset for digest, offset in begun.items())
        self._stirred = asyncio.Event()
        self.sent = 0
        self.failed: Exception | None = None
        """What went wrong with the folder; gRPC drops what is raised where it takes messages from."""

    async def requests(self) -> AsyncIterator[pb.PutRequest]:
        """Messages until the depot has all objects."""
        while self._left:
            if not self._waiting:
                self._stirred.clear()
                await self._stirred.wait()
                continue
            try:
                request = await asyncio.to_thread(self._request, self._planned())
            except (FolderError, OSError) as error:
                self.failed = error
                return
            yield request
            self.sent += sum(len(part.data) for part in request.parts)
            if self._told is not None:
                self._told(min(self.sent, self._total), self._total)

    def hear(self, digest: str, *, stored: bool, offset: int) -> None:
        """Take in what has become of an object. Raises FolderError for one that changes all the time."""
        self._stirred.set()
        if stored:
            self._left.discard(digest)
            return
        self._tries[digest] = self._tries.get(digest, 0) + 1
        if digest not in self._left or self._tries[digest] >= _SENT_AGAIN:
            raise FolderError(
                f"{self._source_name(digest)} changes while it is sent: wait until it is whole, and begin anew"
            )
        self._waiting = deque(each for each in self._waiting if each[0] != digest)
        self._waiting.append((digest, offset))

    def _planned(self) -> list[ContentSpan]:
        """What goes into one message: the next parts of as many objects as it has room for."""
        spans: list[ContentSpan] = []
        room = SENT_AT_ONCE
        while self._waiting and room > 0 and len(spans) < OBJECTS_AT_ONCE:
            digest, offset = self._waiting.popleft()
            left = self._objects[digest].size - offset
            spans.append(ContentSpan(digest=digest, offset=offset, length=min(room, left)))
            if left > room:
                self._waiting.appendleft((digest, offset + room))
            room -= min(room, left)
        return spans

    def _request(self, spans: Sequence[ContentSpan]) -> pb.PutRequest:
        return pb.PutRequest(
            parts=[
                pb.PutPart(
                    object=pb.DepotObject(digest=bytes.fromhex(each.digest), size=self._objects[each.digest].size),
                    offset=each.offset,
                    data=_read(self._sources[each.digest], each.offset, each.length),
                )
                for each in spans
            ]
        )

    def _source_name(self, digest: str) -> str:
        source = self._sources.get(digest, b"")
        return "the tree" if isinstance(source, bytes) else str(source)


def _read(source: Path | FileSource | bytes, offset: int, length: int) -> bytes:
    if isinstance(source, bytes):
        return source[offset : offset + length]
    data = _read_path(source, offset, length) if isinstance(source, Path) else source.read(offset, length)
    if len(data) < length:
        raise FolderError(f"{source} became shorter while it was sent: begin anew")
    return data


def _read_path(path: Path, offset: int, length: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, length, offset)
    finally:
        os.close(descriptor)


def _error(status: grpc.StatusCode, details: str, address: str) -> MusterError:
    """The error that a call to the depot ended with."""
    if status in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
        return UnavailableError(f"the depot at {address} does not answer: {details}")
    error = ERRORS.get(status)
    return MusterError(f"the depot at {address} failed ({status.name}): {details}") if error is None else error(details)
