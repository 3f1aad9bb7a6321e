"""Reports on their way to the coordinator."""

import asyncio
from collections.abc import Callable, Iterable

from muster import wire
from muster.domain.ids import ExecutionId
from muster.domain.plan import Report, Stage
from muster.rpc.v1 import agents_pb2 as pb

BETTER_SOON = 0.02
"""Seconds for which news of what has only begun wait for better news.

Most executions are prepared in no time, and that says both; so it is with programs that end at once.
"""

BEGUN = frozenset({Stage.PREPARING, Stage.RUNNING})
"""Nobody waits to hear that something is being prepared or runs."""


class Reporting:
    """Sends reports, of each execution the newest."""

    def __init__(self, send: Callable[[pb.AgentMessage], None]) -> None:
        self._send = send
        self._waiting: dict[ExecutionId, Report] = {}
        self._later: asyncio.TimerHandle | None = None

    def tell(self, reports: Iterable[Report]) -> None:
        """Send reports, and those that wait, now or soon."""
        self._waiting.update((report.execution, report) for report in reports)
        if any(report.stage not in BEGUN for report in self._waiting.values()):
            self._tell_now()
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(BETTER_SOON, self._tell_now)

    def _tell_now(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        waiting, self._waiting = self._waiting, {}
        reports = map(wire.report_to_wire, waiting.values())
        self._send(pb.AgentMessage(reports=pb.Reports(reports=reports)))
