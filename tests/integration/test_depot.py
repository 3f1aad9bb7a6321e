"""The depot over gRPC: what is sent, taken up again, given out, and whom it turns away."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from coordinator.depot.limits import DEPOT_SERVER_OPTIONS
from coordinator.depot.service import DepotService
from muster.domain.data.swarm import ContentPieces, ContentSpan
from muster.domain.errors import ExhaustedError, MusterError, PermissionDeniedError, UnavailableError
from muster.rpc.channel import NOTHING, open_channel
from muster.rpc.v1 import depot_pb2 as pb
from muster.rpc.v1.depot_pb2_grpc import DepotServiceStub, add_DepotServiceServicer_to_server
from muster.transfer.depot_client import DepotClient
from muster.transfer.folder import Folder, FolderError, read_folder
from muster.transfer.objects import ObjectFiles
from muster.trust.depot_ticket import (
    DEPOT_TICKET_METADATA,
    DepotOperation,
    DepotTicket,
    make_depot_ticket,
)

KEY = bytes(range(32))
NOW = datetime(2026, 11, 25, tzinfo=UTC)
LIMIT = 60.0
LARGE = 3 * 1024 * 1024 + 17


@dataclass(kw_only=True)
class Depot:
    """A depot that is served, and tickets for it."""

    directory: Path
    address: str
    channel: grpc.aio.Channel
    now: list[datetime] = field(default_factory=lambda: [NOW])

    def ticket(self, operation: DepotOperation, *, tree: str = "", room: int = 1 << 40, limit: int = 1 << 40) -> str:
        return make_depot_ticket(
            KEY,
            DepotTicket(
                operation=operation,
                ticket=os.urandom(8).hex(),
                project="vision",
                account="anna",
                tree=tree,
                room=room,
                limit=limit,
                not_after=NOW + timedelta(hours=24),
            ),
        )

    def client(self, ticket: str) -> DepotClient:
        return DepotClient(self.channel, ticket, self.address)

    def sender(self, room: int = 1 << 40, limit: int = 1 << 40) -> DepotClient:
        return self.client(self.ticket(DepotOperation.PUT, room=room, limit=limit))

    def put_call(self) -> Any:
        """A stream whose messages the test chooses."""
        stub: Any = DepotServiceStub(self.channel)
        return stub.Put(metadata=((DEPOT_TICKET_METADATA, self.ticket(DepotOperation.PUT)),))


@asynccontextmanager
async def depot(directory: Path) -> AsyncIterator[Depot]:
    now = [NOW]
    server = grpc.aio.server(options=DEPOT_SERVER_OPTIONS)
    add_DepotServiceServicer_to_server(DepotService(directory, lambda: KEY, lambda: now[0]), server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    channel = open_channel(address, NOTHING)
    try:
        async with asyncio.timeout(LIMIT):
            yield Depot(directory=directory, address=address, channel=channel, now=now)
    finally:
        await channel.close()
        await server.stop(None)


def folder_of(directory: Path, files: dict[str, bytes]) -> Folder:
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return read_folder(directory, now_ns=0)


def part(content: bytes, start: int, end: int, size: int | None = None) -> pb.PutPart:
    return pb.PutPart(
        object=pb.DepotObject(digest=sha256(content).digest(), size=len(content) if size is None else size),
        offset=start,
        data=content[start:end],
    )


async def outcome_of(call: Any) -> pb.PutOutcome:
    """The next answer that tells of an object."""
    while True:
        answer: pb.PutResponse = await call.read()
        if answer.outcomes:
            return answer.outcomes[0]


async def test_a_project_keeps_no_more_than_it_may(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "code", {"train.py": b"print()", "large": os.urandom(1000)})
    more = folder_of(tmp_path / "more", {"more": os.urandom(1000)})
    size = folder.tree.size + len(folder.tree.form)
    async with depot(tmp_path / "depot") as it:
        with pytest.raises(ExhaustedError, match=r"keeps 0 B in the depot and may keep .*more do not fit"):
            await it.sender(limit=size - 1).send(folder)
        assert list(ObjectFiles(it.directory).all()) == []  # it was refused before anything was sent
        assert (await it.sender(limit=size).send(folder)).new == 3
        assert (await it.sender(limit=size).send(folder)).new == 0
        with pytest.raises(ExhaustedError, match="muster projects storage vision --limit SIZE"):
            await it.sender(limit=size + 1000).send(more)


async def test_an_object_is_refused_that_was_never_asked_about_and_does_not_fit(tmp_path: Path) -> None:
    async with depot(tmp_path / "depot") as it:
        stub: Any = DepotServiceStub(it.channel)
        call = stub.Put(metadata=((DEPOT_TICKET_METADATA, it.ticket(DepotOperation.PUT, limit=10)),))
        await call.write(pb.PutRequest(parts=[part(bytes(11), 0, 11)]))
        with pytest.raises(grpc.aio.AioRpcError, match="may keep 10 B"):
            await outcome_of(call)
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_folder_that_has_not_changed_is_one_question_and_what_is_gone_is_sent_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "code", {"train.py": b"print()", "large": os.urandom(1000)})
    settled = read_folder(folder.path, now_ns=9 * 10**18)
    again = read_folder(folder.path, now_ns=9 * 10**18, remembered=settled.remembered)
    assert again.unchanged
    async with depot(tmp_path / "depot") as it:
        assert not await it.sender().has_tree(again.summary.digest)
        first = await it.sender().send(again)
        assert (first.new, await it.sender().has_tree(first.tree)) == (3, True)
        now = await it.sender().send(again)
        assert (now.tree, now.size, now.new, now.sent) == (first.tree, first.size, 0, 0)
        ObjectFiles(it.directory).remove(again.tree.objects[0].digest)
        it.now[0] += timedelta(hours=2)  # it was looked at just before
        assert (await it.sender().send(again)).new == 1


async def test_a_folder_that_was_sent_is_fetched_as_it_was(tmp_path: Path) -> None:
    files = {"train.py": b"print()", "large": os.urandom(LARGE), "empty": b"", "same": b"print()"}
    folder = folder_of(tmp_path / "code", files)
    async with depot(tmp_path / "depot") as it:
        sent = await it.sender().send(folder)
        assert sent.tree == folder.tree.digest
        assert sent.new == 4  # three contents and the tree
        assert sent.sent == LARGE + len(b"print()") + len(folder.tree.form)
        reader = it.client(it.ticket(DepotOperation.GET, tree=sent.tree))
        assert await reader.tree(sent.tree, len(folder.tree.form)) == folder.tree
        pieces = ContentPieces(folder.tree.objects)
        got = b""
        for piece in range(pieces.count):
            got += b"".join([data async for data in reader.get(pieces.spans(piece))])
        assert got == b"".join(
            next(content for content in files.values() if sha256(content).hexdigest() == each.digest)
            for each in folder.tree.objects
        )


async def test_a_folder_that_was_sent_before_is_one_question(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "code", {f"f{number}": os.urandom(100) for number in range(20)})
    async with depot(tmp_path / "depot") as it:
        await it.sender().send(folder)
        again = await it.sender(room=0).send(folder)
        assert (again.new, again.sent) == (0, 0)


async def test_only_what_differs_is_sent(tmp_path: Path) -> None:
    async with depot(tmp_path / "depot") as it:
        await it.sender().send(folder_of(tmp_path / "code", {"large": os.urandom(LARGE), "train.py": b"1"}))
        changed = folder_of(tmp_path / "code", {"train.py": b"22"})
        sent = await it.sender().send(changed)
        assert sent.sent == 2 + len(changed.tree.form)


async def test_an_object_goes_on_where_its_sender_was_lost(tmp_path: Path) -> None:
    content = os.urandom(LARGE)
    folder = folder_of(tmp_path / "code", {"large": content})
    async with depot(tmp_path / "depot") as it:
        call = it.put_call()
        await call.write(pb.PutRequest(parts=[part(content, 0, 1024 * 1024)]))
        await call.read()
        call.cancel()
        sent = await it.sender().send(folder)
        assert sent.sent == LARGE - 1024 * 1024 + len(folder.tree.form)
        assert ObjectFiles(it.directory).size(sha256(content).hexdigest()) == LARGE


async def test_an_object_goes_on_after_a_restart_of_the_depot(tmp_path: Path) -> None:
    content = os.urandom(LARGE)
    folder = folder_of(tmp_path / "code", {"large": content})
    async with depot(tmp_path / "depot") as it:
        call = it.put_call()
        await call.write(pb.PutRequest(parts=[part(content, 0, 500)]))
        await call.read()
    async with depot(tmp_path / "depot") as it:
        assert await it.sender().missing(folder.tree.objects) == {sha256(content).hexdigest(): 500}
        sent = await it.sender().send(folder)
        assert sent.sent == LARGE - 500 + len(folder.tree.form)


async def test_an_object_that_arrived_and_was_never_told_of_is_stored_without_a_further_byte(tmp_path: Path) -> None:
    content = b"whole, and not yet in its place"
    digest = sha256(content).hexdigest()
    with ObjectFiles(tmp_path / "depot").arriving(digest, len(content)) as arriving:
        arriving.write(content)
    async with depot(tmp_path / "depot") as it:
        sent = await it.sender().send(folder_of(tmp_path / "code", {"a": content}))
        assert sent.new == 2
        assert ObjectFiles(it.directory).size(digest) == len(content)


async def test_two_who_send_the_same_at_once_both_hear_that_it_is_stored(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "code", {f"f{number}": os.urandom(40_000) for number in range(50)})
    async with depot(tmp_path / "depot") as it, asyncio.TaskGroup() as tasks:
        sending = [tasks.create_task(it.sender().send(folder)) for _ in range(3)]
        for each in sending:
            await each
        assert await it.sender().missing(folder.tree.objects) == {}


async def test_a_part_from_another_place_is_answered_with_the_place_that_is_wanted(tmp_path: Path) -> None:
    content = b"0123456789"
    async with depot(tmp_path / "depot") as it:
        call = it.put_call()
        await call.write(pb.PutRequest(parts=[part(content, 4, 6), part(content, 6, 10)]))
        assert await outcome_of(call) == pb.PutOutcome(digest=sha256(content).digest(), offset=0)
        await call.write(pb.PutRequest(parts=[part(b"other", 0, 5), part(content, 0, 10)]))
        assert (await outcome_of(call)).stored
        call.cancel()


async def test_content_that_is_not_what_its_name_says_is_never_given_out(tmp_path: Path) -> None:
    content = b"genuine"
    wrong = pb.PutPart(object=pb.DepotObject(digest=sha256(content).digest(), size=7), data=b"forged!")
    async with depot(tmp_path / "depot") as it:
        call = it.put_call()
        await call.write(pb.PutRequest(parts=[wrong]))
        assert await outcome_of(call) == pb.PutOutcome(digest=sha256(content).digest(), offset=0)
        assert ObjectFiles(it.directory).size(sha256(content).hexdigest()) is None
        await call.write(pb.PutRequest(parts=[part(b"", 0, 0), part(content, 0, 7)]))
        assert (await outcome_of(call)).stored
        call.cancel()


async def test_a_file_that_changed_after_it_was_read_is_told_by_its_path(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "code", {"train.py": b"before"})
    (tmp_path / "code/train.py").write_bytes(b"after!")
    async with depot(tmp_path / "depot") as it:
        with pytest.raises(FolderError, match=r"train\.py changes while it is sent"):
            await it.sender().send(folder)


async def test_a_file_that_became_shorter_is_told_by_its_path(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "code", {"train.py": b"before"})
    (tmp_path / "code/train.py").write_bytes(b"b")
    async with depot(tmp_path / "depot") as it:
        with pytest.raises(FolderError, match=r"train\.py became shorter"):
            await it.sender().send(folder)


async def test_a_project_without_room_is_refused_with_what_it_needs(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "code", {"large": os.urandom(5000)})
    async with depot(tmp_path / "depot") as it:
        with pytest.raises(PermissionDeniedError, match=r"project vision has room for 3\.9 KiB more"):
            await it.sender(room=4000).send(folder)
        assert await it.sender().missing(folder.tree.objects) != {}


Opened = Callable[[DepotClient], Awaitable[object]]


async def ask(client: DepotClient) -> object:
    return await client.missing([])


async def fetch(client: DepotClient) -> object:
    return [data async for data in client.get([ContentSpan(digest="0" * 64, offset=0, length=1)])]


@pytest.mark.parametrize(
    ("operation", "does"), [(DepotOperation.GET, ask), (DepotOperation.PUT, fetch)], ids=["ask", "fetch"]
)
async def test_a_ticket_opens_nothing_but_what_it_is_for(
    tmp_path: Path, operation: DepotOperation, does: Opened
) -> None:
    async with depot(tmp_path / "depot") as it:
        with pytest.raises(PermissionDeniedError, match="the ticket is for"):
            await does(it.client(it.ticket(operation, tree="0" * 64)))


@pytest.mark.parametrize("does", [ask, fetch])
async def test_whoever_shows_no_ticket_of_this_fleet_gets_nothing(tmp_path: Path, does: Opened) -> None:
    async with depot(tmp_path / "depot") as it:
        for ticket in ("", "v1.e30.forged"):
            with pytest.raises(MusterError, match="ticket"):
                await does(it.client(ticket))


async def test_a_ticket_whose_time_is_over_opens_nothing(tmp_path: Path) -> None:
    async with depot(tmp_path / "depot") as it:
        sender = it.sender()
        it.now[0] = NOW + timedelta(hours=24)
        with pytest.raises(MusterError, match="the time of the ticket is over"):
            await sender.missing([])


async def test_a_ticket_for_a_tree_gives_what_the_tree_lists_and_nothing_else(tmp_path: Path) -> None:
    mine, other = (folder_of(tmp_path / name, {"a": name.encode()}) for name in ("mine", "other"))
    async with depot(tmp_path / "depot") as it:
        for each in (mine, other):
            await it.sender().send(each)
        reader = it.client(it.ticket(DepotOperation.GET, tree=mine.tree.digest))
        for digest in (other.tree.digest, other.tree.entries[0].content):
            with pytest.raises(PermissionDeniedError, match="does not list that object"):
                _ = [data async for data in reader.get([ContentSpan(digest=digest, offset=0, length=1)])]


async def test_more_of_an_object_than_there_is_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "code", {"a": b"123"})
    async with depot(tmp_path / "depot") as it:
        await it.sender().send(folder)
        reader = it.client(it.ticket(DepotOperation.GET, tree=folder.tree.digest))
        with pytest.raises(MusterError, match="does not have that part"):
            _ = [
                data
                async for data in reader.get([ContentSpan(digest=folder.tree.entries[0].content, offset=1, length=3)])
            ]


async def test_a_depot_that_is_away_is_named(tmp_path: Path) -> None:
    async with depot(tmp_path / "depot") as it:
        pass
    channel = open_channel(it.address, NOTHING)
    try:
        with pytest.raises(UnavailableError, match=f"the depot at {it.address} does not answer"):
            await DepotClient(channel, "ticket", it.address).missing([])
    finally:
        await channel.close()
