"""Bytes that go to or from who is attached are use of the execution, and nothing else of an attachment is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.attach.relayed.attending import Attending
from agent.attach.relayed.launches import LaunchesFirst
from agent.attach.relayed.target import AttachmentTarget, opened
from muster.carrying.channel_end import ChannelEnd, Outgoing
from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOpened,
    AttachmentOutput,
)
from muster.domain.attachments.request import AttachmentRequest, CommandRequest, ConnectionRequest
from muster.domain.jobs.job import Role
from tests.contract.attached import attachable
from tests.contract.runtimes import ProcessPlace, shell, trial

LIMIT = 20.0
STAYS = Role(command=shell("echo up; sleep 600"))


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory with a short name, as sockets need it."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        yield Path(directory)


class Attached:
    """A command or a connection in an execution, as the one sees it who attached to it."""

    def __init__(self) -> None:
        self.end = ChannelEnd()
        self.uses = 0
        """How often the agent counted a use."""

    def count(self) -> None:
        self.uses += 1


def command(directory: Path, *words: str) -> AbstractAsyncContextManager[Attached]:
    """A command that is attended by an agent."""
    return attended(directory, CommandRequest(words=words, has_input=True))


@asynccontextmanager
async def attended(directory: Path, request: AttachmentRequest) -> AsyncIterator[Attached]:
    """Something that is attended by an agent, over a channel without a relay."""
    here, there = Attached(), ChannelEnd()
    async with asyncio.timeout(LIMIT), trial(ProcessPlace(directory), directory, STAYS) as it:
        await it.release()
        await it.says(b"up")
        async with attachable(it) as found, asyncio.TaskGroup() as tasks:
            sides = [(here.end.begin(), there), (there.begin(), here.end)]  # both, before anything is carried
            carrying = [tasks.create_task(carry(*side), name="carry") for side in sides]
            attending = Attending(there, request, here.count, LaunchesFirst(lambda: 0.0))
            assert isinstance(request, CommandRequest | ConnectionRequest)
            opening = opened(await found.companion(), request)
            serving = tasks.create_task(serve(attending, there, opening), name="attend")
            yield here
            await serving
            for each in carrying:
                each.cancel()


async def carry(outgoing: Outgoing, receiver: ChannelEnd) -> None:
    while True:
        receiver.hear(await outgoing.get())


async def serve(attending: Attending, end: ChannelEnd, opening: Awaitable[AttachmentTarget]) -> None:
    ended = await attending.served(opening)
    end.dealt()
    await end.send(ended)
    await end.settled()


async def test_a_command_that_neither_prints_nor_reads_is_no_use(tmp_path: Path) -> None:
    async with command(tmp_path, "true") as it:
        assert isinstance(await it.end.receive(), AttachmentOpened)
        while not isinstance(frame := await it.end.receive(), AttachmentEnded):
            pass
        it.end.dealt()
        assert (frame.code, it.uses) == (0, 0)


async def test_input_and_output_are_each_a_use(tmp_path: Path) -> None:
    async with command(tmp_path, "cat") as it:
        assert isinstance(await it.end.receive(), AttachmentOpened)
        await it.end.send(AttachmentInput(data=b"a"))
        while not isinstance(await it.end.receive(), AttachmentOutput):
            pass
        assert it.uses == 2
        await it.end.send(AttachmentInputEnd())
        while not isinstance(await it.end.receive(), AttachmentEnded):
            pass
        it.end.dealt()
        assert it.uses == 2


async def test_a_connection_is_used_whenever_it_moves_bytes_and_never_by_standing_open(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with attended(tmp_path, ConnectionRequest(port=port)) as it:
            assert isinstance(await it.end.receive(), AttachmentOpened)
            for uses in (0, 2):
                assert it.uses == uses
                await it.end.send(AttachmentInput(data=b"ping"))
                assert await it.end.receive() == AttachmentOutput(data=b"ping")
            await it.end.send(AttachmentInputEnd())
            while not isinstance(await it.end.receive(), AttachmentEnded):
                pass
            it.end.dealt()
            assert it.uses == 4
