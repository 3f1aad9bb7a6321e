"""The way from the operations on attachments to the agents: an order goes down the stream that a node has open."""

import asyncio
from collections.abc import Awaitable, Callable

from muster.domain.attachments.request import AttachmentOrder, NoticeForAttached
from muster.domain.errors import UnavailableError
from muster.domain.ids import NodeId

ORDER_LIMIT = 5.0
"""Seconds in which an agent must take an order from its stream."""

SendOrder = Callable[[AttachmentOrder | NoticeForAttached], Awaitable[None]]
"""Writes an order to the stream of one agent."""


class AgentLines:
    """The open streams of agents."""

    def __init__(self) -> None:
        self._lines: dict[NodeId, SendOrder] = {}

    def connected(self, node: NodeId, send: SendOrder) -> None:
        """A node has a stream, which takes the place of an older one."""
        self._lines[node] = send

    def disconnected(self, node: NodeId, send: SendOrder) -> None:
        """A stream has ended; a newer one of the same node stays."""
        if self._lines.get(node) is send:
            del self._lines[node]

    async def order(self, node: NodeId, order: AttachmentOrder | NoticeForAttached) -> None:
        """Have an agent open its side, or tell the attached; raises UnavailableError where it cannot be told."""
        send = self._lines.get(node)
        if send is None:
            raise UnavailableError(f"{node} is not connected now; nothing was started")
        try:
            async with asyncio.timeout(ORDER_LIMIT):
                await send(order)
        except TimeoutError:
            raise UnavailableError(f"{node} has not taken the order within {ORDER_LIMIT:g} s") from None
