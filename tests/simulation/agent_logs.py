"""Carries logs to the coordinator until it has all of them, as `agent/logs/push.py` does; only lengths matter."""

from collections.abc import Callable
from dataclasses import dataclass

from muster.domain.ids import ExecutionId
from tests.simulation.messages import LogAck, LogChunk

CHUNK = 4000
"""Bytes of one message: little, so that logs take several."""


@dataclass(slots=True)
class _Course:
    size: int
    acked: int = 0
    under_way: bool = False
    finished: bool = False
    over: bool = False


class AgentLogs:
    """Sends what the spools hold, one piece of each at a time."""

    def __init__(self, completed: Callable[[ExecutionId], None]) -> None:
        self._completed = completed
        self._courses: dict[ExecutionId, _Course] = {}
        self._send: Callable[[LogChunk], None] | None = None

    def follow(self, execution: ExecutionId, size: int) -> None:
        """Carry this log, which has so many bytes in the end."""
        self._courses[execution] = _Course(size)

    def follows(self, execution: ExecutionId) -> bool:
        return execution in self._courses

    def grow(self, execution: ExecutionId, size: int) -> None:
        """User code prints."""
        if execution in self._courses:
            self._courses[execution].size = size
            self._push(execution)

    def finish(self, execution: ExecutionId) -> None:
        """No more will come."""
        if execution in self._courses:
            self._courses[execution].finished = True
            self._push(execution)

    def forget(self, execution: ExecutionId) -> None:
        """The execution is being cleared away."""
        self._courses.pop(execution, None)

    def stream_opened(self, send: Callable[[LogChunk], None]) -> None:
        """Go on from what was acknowledged, on a new stream."""
        self._send = send
        for execution, course in self._courses.items():
            course.under_way = False
            self._push(execution)

    def stream_lost(self) -> None:
        self._send = None

    def acknowledge(self, ack: LogAck) -> None:
        """The coordinator has so much."""
        course = self._courses.get(ack.execution)
        if course is None or course.over:
            return
        course.under_way, course.acked = False, ack.offset
        if ack.complete or ack.unwanted:
            course.over = True
            self._completed(ack.execution)
        else:
            self._push(ack.execution)

    def _push(self, execution: ExecutionId) -> None:
        course = self._courses[execution]
        if self._send is None or course.under_way or course.over:
            return
        length = min(CHUNK, max(0, course.size - course.acked))
        if not length and not course.finished:
            return
        last = course.finished and course.acked + length >= course.size
        course.under_way = True
        self._send(LogChunk(execution=execution, offset=course.acked, length=length, last=last))
