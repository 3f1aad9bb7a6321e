"""The way from the operations on attachments to the agents: an order goes down the stream that a node has open."""

import asyncio
from collections.abc import Awaitable, Callable

from muster.domain.attachments.request import AttachmentOrder, NoticeForAttached
from muster.domain.errors import UnavailableError
from muster.domain.ids import NodeId

ORDER_LIMIT = 5.0
"""Seconds in which an agent must have come, and taken an order from its stream."""

SendOrder = Callable[[AttachmentOrder | NoticeForAttached], Awaitable[None]]
"""Writes an order to the stream of one agent."""


class LineEndedError(Exception):
    """The stream is over; whether its agent has heard the order is not known."""


class AgentLines:
    """The open streams of agents."""

    def __init__(self, limit: float = ORDER_LIMIT) -> None:
        """`limit`: seconds in which an order must have gone to its agent, which may have to come back for that."""
        self._limit = limit
        self._lines: dict[NodeId, SendOrder] = {}
        self._awaited: dict[NodeId, asyncio.Event] = {}
        """Nodes without a stream for which there is an order; each is set once there is one."""

    def coming(self, node: NodeId) -> None:
        """A node has a new stream, which takes no orders yet; its older one takes none any more."""
        self._lines.pop(node, None)

    def connected(self, node: NodeId, send: SendOrder) -> None:
        """The stream of a node takes orders; `send` raises LineEndedError once it is over."""
        self._lines[node] = send
        if (awaited := self._awaited.pop(node, None)) is not None:
            awaited.set()

    def disconnected(self, node: NodeId, send: SendOrder) -> None:
        """A stream has ended; a newer one of the same node stays."""
        if self._lines.get(node) is send:
            del self._lines[node]

    async def order(self, node: NodeId, order: AttachmentOrder | NoticeForAttached) -> None:
        """Have an agent open its side, or tell the attached; raises UnavailableError where it cannot be told.

        The stream that has taken the order is the present one of the node when this is over.
        """
        sending = False
        try:
            async with asyncio.timeout(self._limit):
                send: SendOrder | None = None
                while send is None or self._lines.get(node) is not send:  # what goes to a stream that is over is lost
                    sending, send = False, await self._line(node)
                    sending = True
                    try:
                        await send(order)
                    except LineEndedError:
                        self.disconnected(node, send)
        except TimeoutError:
            why = f"has not taken the order within {self._limit:g} s" if sending else "is not connected now"
            raise UnavailableError(f"{node} {why}; nothing was started") from None

    async def _line(self, node: NodeId) -> SendOrder:
        """The stream of a node, once there is one."""
        while (send := self._lines.get(node)) is None:
            await self._awaited.setdefault(node, asyncio.Event()).wait()
        return send
