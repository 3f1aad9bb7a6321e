"""Carries the logs of executions to the coordinator, from the byte that it has, until it has all of them."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc.aio

from agent.logs.spool import LogSpool
from muster.domain.errors import MusterError
from muster.domain.ids import ExecutionId, NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc

LOG_MESSAGE_BYTES = 128 * 1024
"""Bytes of one message."""
LOG_WINDOW = 1024 * 1024
"""Bytes of one log that may be under way; so a busy log leaves space for the others."""


Message = TypeVar("Message")
Answer = TypeVar("Answer")


class StreamLostError(MusterError):
    """A stream to the coordinator has ended."""


async def write(call: "grpc.aio.StreamStreamCall[Message, Answer]", message: Message) -> None:
    """Send a message; raises StreamLostError where gRPC speaks of a programming error: the stream had ended before."""
    try:
        await call.write(message)
    except asyncio.InvalidStateError:
        raise StreamLostError("the stream has ended") from None


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
    astray: bool = False
    """Whether the coordinator has less or more than was thought: nothing is sent until it has said how much."""
    under_way: deque[int] = field(default_factory=deque)
    """Where each chunk that is not acknowledged yet ends."""

    def start_over(self) -> None:
        """Go on from what was acknowledged."""
        self.sent, self.ended, self.astray = self.acked, False, False
        self.under_way.clear()

    def acknowledge(self, offset: int) -> None:
        """The coordinator has so much; chunks are acknowledged one by one, in the order in which they were sent."""
        expected = self.under_way.popleft() if self.under_way else offset
        self.acked = offset
        self.astray |= offset != expected
        if self.astray and not self.under_way:
            self.start_over()


class LogPusher:
    """Sends what the spools hold; a new stream goes on where the last acknowledgement ended."""

    def __init__(self, node: NodeId, completed: Callable[[ExecutionId], None]) -> None:
        self._node = node
        self._completed = completed
        self._courses: dict[ExecutionId, _Course] = {}
        self._news = asyncio.Event()

    def follow(self, execution: ExecutionId, spool: LogSpool) -> None:
        """Carry this log until it is complete, or forgotten. Nobody else hears that it grows from here on."""
        self._courses[execution] = _Course(spool)
        spool.grew = self._news
        if spool.size or spool.finished:
            self._news.set()

    def forget(self, execution: ExecutionId) -> None:
        """The execution is being cleared away."""
        self._courses.pop(execution, None)

    async def run(
        self, stub: "agents_pb2_grpc.AgentServiceAsyncStub", metadata: tuple[tuple[str, str], ...] | None = None
    ) -> None:
        """Push over one stream until it breaks; raises AioRpcError or StreamLostError then."""
        call = stub.PushLogs(metadata=metadata)
        for course in self._courses.values():
            course.start_over()
        self._news.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send(call), name="logs: send")
                await self._acknowledge(call)
        finally:
            call.cancel()

    async def _send(self, call: "grpc.aio.StreamStreamCall[pb.LogChunk, pb.LogAck]") -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            busy = True
            while busy:
                busy = False
                for execution in list(self._courses):
                    chunk = self._next_chunk(execution)
                    if chunk is not None:
                        busy = True
                        await write(call, chunk)

    def _next_chunk(self, execution: ExecutionId) -> pb.LogChunk | None:
        """The next piece of a log, in turn with the others; None if nothing can be sent of it now."""
        course = self._courses.get(execution)
        if course is None or course.over or course.ended or course.astray or course.sent - course.acked >= LOG_WINDOW:
            return None
        finished = course.spool.finished
        data = course.spool.read(course.sent, LOG_MESSAGE_BYTES) if course.sent < course.spool.size else b""
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
            self._take(ack)

    def _take(self, ack: pb.LogAck) -> None:
        execution = ExecutionId(ack.execution)
        course = self._courses.get(execution)
        if course is None or course.over:
            return
        course.acknowledge(ack.offset)
        if ack.complete or ack.unwanted:
            course.over = True
            self._completed(execution)
        self._news.set()
