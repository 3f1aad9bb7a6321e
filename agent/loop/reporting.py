"""Reports on their way to the coordinator."""

import asyncio
from collections.abc import Callable, Iterable

from muster import wire
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import ExecutionId
from muster.rpc.v1 import agents_pb2 as pb

BETTER_SOON = 0.1
"""Seconds for which news of what has only begun wait for better news.

Most executions are prepared in no time, and that says both; so it is with programs that end at once. Where many of a
gang are on one machine it takes longer, and just then nobody should be kept busy with what is old the next moment.
"""

BEGUN = frozenset({Stage.PREPARING, Stage.RUNNING})
"""Nobody waits to hear that something is being prepared or runs."""


class Reporting:
    """Sends reports, of each execution the newest."""

    def __init__(self, send: Callable[[pb.AgentMessage], None]) -> None:
        self._send = send
        self._waiting: dict[ExecutionId, Report] = {}
        self._sending: asyncio.Handle | None = None
        self._urgent = False

    def tell(self, reports: Iterable[Report]) -> None:
        """Send reports and those that wait: at once, with what else this turn of the event loop brings, or soon."""
        self._waiting.update((report.execution, report) for report in reports)
        if self._urgent:
            return
        loop = asyncio.get_running_loop()
        if any(report.stage not in BEGUN for report in self._waiting.values()):
            if self._sending is not None:
                self._sending.cancel()
            self._sending, self._urgent = loop.call_soon(self._tell_now), True
        elif self._sending is None:
            self._sending = loop.call_later(BETTER_SOON, self._tell_now)

    def _tell_now(self) -> None:
        self._sending, self._urgent = None, False
        waiting, self._waiting = self._waiting, {}
        reports = map(wire.report_to_wire, waiting.values())
        self._send(pb.AgentMessage(reports=pb.Reports(reports=reports)))
