"""The way of orders to agents: also to one that is just coming, and never to a stream that is over."""

import asyncio

import pytest

from coordinator.service.attaching.lines import AgentLines, LineEndedError, SendOrder
from muster.domain.attachments.request import AttachmentOrder, NoticeForAttached
from muster.domain.errors import UnavailableError
from muster.domain.ids import NodeId

NODE = NodeId("gpu-7")
ORDER = NoticeForAttached(attachments=("a1",), text="dev is about to be stopped")
NO_TIME = 0.0


def taking(taken: list[str], name: str) -> SendOrder:
    """A stream that takes everything."""

    async def send(_: AttachmentOrder | NoticeForAttached) -> None:
        taken.append(name)

    return send


async def test_an_order_waits_for_the_stream_of_its_agent() -> None:
    lines, taken = AgentLines(), list[str]()
    ordering = asyncio.create_task(lines.order(NODE, ORDER))
    await asyncio.sleep(0)
    lines.connected(NodeId("gpu-8"), taking(taken, "of another node"))
    lines.connected(NODE, taking(taken, "of this node"))
    await ordering

    assert taken == ["of this node"]


async def test_an_order_whose_stream_is_over_goes_to_the_next_one() -> None:
    lines, taken, old = AgentLines(), list[str](), list[SendOrder]()

    async def send(_: AttachmentOrder | NoticeForAttached) -> None:
        taken.append("old")
        lines.connected(NODE, taking(taken, "new"))
        lines.disconnected(NODE, old[0])

    old.append(send)
    lines.connected(NODE, send)
    await lines.order(NODE, ORDER)

    assert taken == ["old", "new"]


async def test_an_order_that_a_stream_at_its_end_refuses_goes_to_the_next_one() -> None:
    lines, taken = AgentLines(), list[str]()

    async def refuse(_: AttachmentOrder | NoticeForAttached) -> None:
        taken.append("old")
        raise LineEndedError

    lines.connected(NODE, refuse)
    ordering = asyncio.create_task(lines.order(NODE, ORDER))
    await asyncio.sleep(0)
    lines.connected(NODE, taking(taken, "new"))
    await ordering

    assert taken == ["old", "new"]


async def test_no_order_goes_to_the_older_stream_of_an_agent_that_is_coming() -> None:
    lines, taken = AgentLines(), list[str]()
    lines.connected(NODE, taking(taken, "old"))
    lines.coming(NODE)
    ordering = asyncio.create_task(lines.order(NODE, ORDER))
    await asyncio.sleep(0)
    lines.connected(NODE, taking(taken, "new"))
    await ordering

    assert taken == ["new"]


async def test_an_agent_that_does_not_come_is_named() -> None:
    lines = AgentLines(NO_TIME)
    gone = taking([], "gone")
    lines.connected(NODE, gone)
    lines.disconnected(NODE, gone)
    with pytest.raises(UnavailableError, match=r"^gpu-7 is not connected now; nothing was started$"):
        await lines.order(NODE, ORDER)


async def test_an_agent_that_does_not_read_is_named() -> None:
    async def send(_: AttachmentOrder | NoticeForAttached) -> None:
        await asyncio.get_running_loop().create_future()

    lines = AgentLines(NO_TIME)
    lines.connected(NODE, send)
    with pytest.raises(UnavailableError, match=r"^gpu-7 has not taken the order within 0 s; nothing was started$"):
        await lines.order(NODE, ORDER)
