"""The open streams of agents, on which the engine leaves plans."""

import asyncio
import logging

from coordinator.core.effects import SendPlan
from muster.domain.gangs.plan import Plan

log = logging.getLogger(__name__)

MOST_PLANS_WAITING = 1000
"""Most plans that wait for an agent that does not read; then its stream is closed and it starts over."""


class AgentStream:
    """The open stream of one agent: plans that are to be sent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.outbox: asyncio.Queue[Plan] = asyncio.Queue(MOST_PLANS_WAITING)
        self.closed = asyncio.Event()
        """Set when the engine wants the stream to end."""


class AgentStreams:
    """All streams by number; a stream belongs to a node once NodeConnected with its number is accepted."""

    def __init__(self) -> None:
        self._open: dict[int, AgentStream] = {}
        self._last = 0

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def open(self) -> AgentStream:
        """A new stream with a number of its own."""
        self._last += 1
        stream = self._open[self._last] = AgentStream(self._last)
        return stream

    def end(self, stream: AgentStream) -> None:
        """Forget a stream that has ended."""
        self._open.pop(stream.number, None)

    def send(self, effect: SendPlan) -> None:
        """Leave a plan for an agent; the stream of one that does not read is closed."""
        stream = self._open.get(effect.session)
        if stream is None:
            return
        try:
            stream.outbox.put_nowait(effect.plan)
        except asyncio.QueueFull:
            log.warning("agent does not read its plans; closing its stream", extra={"node": effect.node})
            stream.closed.set()

    def close(self, number: int) -> None:
        """Want a stream to end."""
        stream = self._open.get(number)
        if stream is not None:
            stream.closed.set()

    def close_all(self) -> None:
        """Want all streams to end, so that agents tell again what they know."""
        for stream in self._open.values():
            stream.closed.set()
