"""Carries the logs of executions to the coordinator, from the byte that it has, until it has all of them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc.aio

from agent.spool import LogSpool
from muster.domain.errors import MusterError
from muster.domain.ids import ExecutionId, NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc

CHUNK = 128 * 1024
"""Bytes of one message."""
WINDOW = 1024 * 1024
"""Bytes of one log that may be under way; so a busy log leaves room for the others."""


class StreamLostError(MusterError):
    """A stream to the coordinator has ended."""


@dataclass(slots=True)
class _Course:
    """How far one log has been carried."""

    spool: LogSpool
    acked: int = 0
    sent: int = 0
    ended: bool = False
    """Whether the end was sent."""
    over: bool = False
    """Whether the coordinator has all of it, or does not want it."""
    under_way: deque[int] = field(default_factory=deque)
    """Where each chunk that is not acknowledged yet ends."""

    def start_over(self) -> None:
        """Go on from what was acknowledged, on a new stream."""
        self.sent, self.ended = self.acked, False
        self.under_way.clear()


class LogPusher:
    """Sends what the spools hold; a new stream goes on where the last acknowledgement ended."""

    def __init__(self, node: NodeId, completed: Callable[[ExecutionId], Awaitable[None]]) -> None:
        self._node = node
        self._completed = completed
        self._courses: dict[ExecutionId, _Course] = {}
        self._news = asyncio.Event()

    async def follow(self, execution: ExecutionId, spool: LogSpool) -> None:
        """Carry this log until it is complete; cancel to give it up."""
        self._courses[execution] = _Course(spool)
        self._news.set()
        while not spool.finished:
            await spool.grew.wait()
            spool.grew.clear()
            self._news.set()

    def forget(self, execution: ExecutionId) -> None:
        """The execution is being cleared away."""
        self._courses.pop(execution, None)

    async def run(self, stub: "agents_pb2_grpc.AgentServiceAsyncStub") -> None:
        """Push over one stream until it breaks; raises AioRpcError or StreamLostError then."""
        call = stub.PushLogs()
        for course in self._courses.values():
            course.start_over()
        self._news.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send(call), name="logs: send")
                tasks.create_task(self._acknowledge(call), name="logs: acknowledge")
        finally:
            call.cancel()

    async def _send(self, call: "grpc.aio.StreamStreamCall[pb.LogChunk, pb.LogAck]") -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            busy = True
            while busy:
                busy = False
                for execution, course in list(self._courses.items()):
                    chunk = self._next_chunk(execution, course)
                    if chunk is not None:
                        busy = True
                        await call.write(chunk)

    def _next_chunk(self, execution: ExecutionId, course: _Course) -> pb.LogChunk | None:
        """The next piece of a log, in turn with the others; None if nothing can be sent of it now."""
        if course.over or course.ended or course.sent - course.acked >= WINDOW:
            return None
        finished = course.spool.finished
        data = course.spool.read(course.sent, CHUNK) if course.sent < course.spool.size else b""
        if not data and not finished:
            return None
        offset = course.sent
        course.sent += len(data)
        course.ended = finished and course.sent >= course.spool.size
        course.under_way.append(course.sent)
        return pb.LogChunk(node=self._node, execution=execution, offset=offset, data=data, last=course.ended)

    async def _acknowledge(self, call: "grpc.aio.StreamStreamCall[pb.LogChunk, pb.LogAck]") -> None:
        while True:
            ack: Any = await call.read()
            if ack is grpc.aio.EOF:
                raise StreamLostError(await call.details() or "the coordinator closed the log stream")
            await self._take(ack)

    async def _take(self, ack: pb.LogAck) -> None:
        execution = ExecutionId(ack.execution)
        course = self._courses.get(execution)
        if course is None or course.over:
            return
        expected = course.under_way.popleft() if course.under_way else ack.offset
        course.acked = ack.offset
        if ack.offset != expected:
            # The coordinator has more or less than was thought: go on from there.
            course.start_over()
        if ack.complete or ack.unwanted:
            course.over = True
            await self._completed(execution)
        self._news.set()
