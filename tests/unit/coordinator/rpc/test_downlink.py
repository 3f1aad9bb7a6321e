"""Messages to an agent go one after the other, and the one that is on its way is not given up."""

import asyncio

import pytest

from coordinator.rpc.agents.downlink import Downlink, StreamEnded

LONG = 3600.0


class SlowStream:
    """Takes a message at a time, each when it is told to."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.begun = asyncio.Queue[str]()
        self.go_on = asyncio.Semaphore(0)

    async def write(self, message: str) -> None:
        self.said.append(f"{message} begins")
        self.begun.put_nowait(message)
        await self.go_on.acquire()
        self.said.append(f"{message} is written")


async def test_messages_of_several_go_one_after_the_other() -> None:
    stream = SlowStream()
    link = Downlink(stream, LONG)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(link.send("a"))
        tasks.create_task(link.send("b"))
        assert await stream.begun.get() == "a"
        assert stream.begun.empty()
        stream.go_on.release()
        assert await stream.begun.get() == "b"
        stream.go_on.release()
    assert stream.said == ["a begins", "a is written", "b begins", "b is written"]


async def test_the_end_waits_for_the_message_on_its_way_and_nothing_follows_it() -> None:
    stream = SlowStream()
    link = Downlink(stream, LONG)
    first, second = asyncio.create_task(link.send("a")), asyncio.create_task(link.send("b"))
    await stream.begun.get()
    ending = asyncio.create_task(link.end())
    stream.go_on.release()
    await ending
    await first
    with pytest.raises(StreamEnded):
        await second
    with pytest.raises(StreamEnded):
        await link.send("c")
    assert stream.said == ["a begins", "a is written"]


async def test_the_end_does_not_wait_for_long_for_an_agent_that_does_not_read() -> None:
    stream = SlowStream()
    link = Downlink(stream, patience=0.0)
    writing = asyncio.create_task(link.send("a"))
    await stream.begun.get()
    await link.end()
    assert not writing.done()
    writing.cancel()
