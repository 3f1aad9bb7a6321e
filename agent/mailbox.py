"""What waits between the loop and the link of a node: events on their way in, messages on their way out."""

import asyncio
from collections import deque
from collections.abc import Iterable

from agent.core.events import Event
from muster import wire
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import ExecutionId
from muster.rpc.v1 import agents_pb2 as pb

MOST_MESSAGES_WAITING = 1000
"""Most messages that wait for a coordinator that does not read; then the stream is opened anew."""

BETTER_SOON = 0.1
"""Seconds for which news of what has only begun wait for better news.

Most executions are prepared in no time, and that says both; so it is with programs that end at once. Where many of a
gang are on one machine it takes longer, and just then nobody should be kept busy with what is old the next moment.
"""

BEGUN = frozenset({Stage.PREPARING, Stage.RUNNING})
"""Nobody waits to hear that something is being prepared or runs."""


class Inbox:
    """Everything that happened and the loop has not taken in yet."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._news = asyncio.Event()

    def put(self, event: Event) -> None:
        """Have an event taken in, after all that came before it."""
        self._events.append(event)
        self._news.set()

    async def some(self) -> "deque[Event]":
        """Wait for events; all that have come, which count as taken."""
        await self._news.wait()
        self._news.clear()
        events, self._events = self._events, deque()
        return events


class Outbox:
    """Messages to the coordinator while there is a stream; of reports, the newest of each execution.

    Where there is no stream nothing is kept: the next Hello tells everything.
    """

    def __init__(self) -> None:
        self.overflowed = asyncio.Event()
        """Set when the coordinator does not read; the stream is of no use then."""
        self._messages: asyncio.Queue[pb.AgentMessage] | None = None
        self._reports: dict[ExecutionId, Report] = {}
        self._sending: asyncio.Handle | None = None
        self._urgent = False

    def open(self) -> "asyncio.Queue[pb.AgentMessage]":
        """What is sent from here on, for the one who writes it."""
        self.overflowed.clear()
        self._messages = asyncio.Queue(MOST_MESSAGES_WAITING)
        return self._messages

    def close(self) -> None:
        """There is no stream any more."""
        self._messages = None

    def send(self, message: pb.AgentMessage) -> bool:
        """Send a message, after all that were sent before it; whether there is a stream for it."""
        if self._messages is None:
            return False
        try:
            self._messages.put_nowait(message)
        except asyncio.QueueFull:
            self._messages = None
            self.overflowed.set()
            return False
        return True

    def tell(self, reports: Iterable[Report]) -> None:
        """Send reports and those that wait: at once, with what else this turn of the event loop brings, or soon."""
        self._reports.update((report.execution, report) for report in reports)
        if self._urgent:
            return
        loop = asyncio.get_running_loop()
        if any(report.stage not in BEGUN for report in self._reports.values()):
            if self._sending is not None:
                self._sending.cancel()
            self._sending, self._urgent = loop.call_soon(self._tell_now), True
        elif self._sending is None:
            self._sending = loop.call_later(BETTER_SOON, self._tell_now)

    def _tell_now(self) -> None:
        self._sending, self._urgent = None, False
        reports, self._reports = self._reports, {}
        self.send(pb.AgentMessage(reports=pb.Reports(reports=map(wire.report_to_wire, reports.values()))))
