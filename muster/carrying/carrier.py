"""Carries a channel over streams to the relay: opens another one after a break, for as long as is agreed."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio

from muster.carrying.channel_end import ChannelEnd, Outgoing
from muster.domain.attachments.channel import ChannelError
from muster.domain.errors import MusterError, PermissionDeniedError
from muster.rpc.v1 import attachments_pb2 as pb
from muster.wire.attachments.frames import channel_message_from_wire, channel_message_to_wire
from muster.wire.checks import WireError

FIRST_RESUME_PAUSE = 0.1
LONGEST_RESUME_PAUSE = 2.0
RESUME_PAUSE_GROWTH = 1.6
"""Seconds between two tries to open a stream, and how they grow."""

STEADY = 5.0
"""Seconds after which a stream was a good one, and pauses begin anew."""

LEAVE_LIMIT = 1.0
"""Seconds for which the last words may be under way when a stream is left."""

Stream = grpc.aio.StreamStreamCall[pb.AttachmentFrame, pb.AttachmentFrame]

_FINAL = frozenset(
    {
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.ABORTED,  # another stream of this end has come, which this one must not take the place of
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.NOT_FOUND,
    }
)
"""What the relay says where no further try would go better."""

_FINAL_AT_FIRST = frozenset({grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED})
"""The same, as long as the other end has never come: nothing is lost yet that would be worth waiting for."""


class CarryingEndedError(MusterError):
    """The relay, or whoever gives tickets, carries this attachment no longer; the sentence says why."""

    def __init__(self, why: str, *, closed: bool = False) -> None:
        """`closed`: somebody has closed it, or has taken the right to it away."""
        super().__init__(why)
        self.closed = closed


class ChannelCarrier:
    """Carries one end of a channel while `run` runs."""

    def __init__(
        self,
        end: ChannelEnd,
        dial: Callable[[], Stream],
        resume_within: float,
        *,
        renew: Callable[[], Awaitable[None]] | None = None,
        on_break: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`dial` begins a stream; `renew` gets another ticket and may raise MusterError; None: there is none.

        `on_break` is told why there is no stream, again and again, and an empty word once there is one again.
        """
        self._end = end
        self._dial = dial
        self._resume_within = resume_within
        self._renew = renew
        self._on_break = on_break
        self._begun = False
        """Whether the other end has ever come."""
        self._broken_since: float | None = None
        self._renewed = False
        """Whether the ticket was made after the last stream that was good."""
        self._under_way: tuple[Stream, Outgoing] | None = None
        """The present stream, and what is to be written on it; None: there is none."""
        self._leaving = False
        self._left = asyncio.Event()
        """Set when the stream has ended on which this end said that it leaves."""

    async def leave(self) -> None:
        """Say that this end says nothing more, and wait for a moment until the relay has taken what was said last.

        The other end waits for that otherwise. Afterwards `run` has ended, or is to be cancelled.
        """
        self._leaving = True
        if self._under_way is None:
            return
        call, outgoing = self._under_way
        with suppress(TimeoutError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            async with asyncio.timeout(LEAVE_LIMIT):
                await outgoing.join()
                await call.done_writing()
                await self._left.wait()

    async def run(self) -> None:
        """Carry until cancelled, or until nothing can be carried any more, which the channel is told."""
        clock = asyncio.get_running_loop().time
        pause = FIRST_RESUME_PAUSE
        self._broken_since = clock()
        while True:
            began = clock()
            try:
                cause = await self._carry()
            except CarryingEndedError as error:
                self._end.lose(str(error), closed=error.closed)
                return
            except (ChannelError, WireError) as error:
                self._end.lose(str(error))
                return
            if self._leaving:
                self._left.set()
                return
            if clock() - began > STEADY:
                pause = FIRST_RESUME_PAUSE
            if self._broken_since is None:
                self._broken_since = clock()
            if clock() - self._broken_since > self._resume_within:
                self._end.lose(f"the connection was lost for {_span(self._resume_within)}: {cause}")
                return
            self._on_break(cause)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            pause = min(pause * RESUME_PAUSE_GROWTH, LONGEST_RESUME_PAUSE)

    async def _carry(self) -> str:
        """Carry over one stream until it breaks; why it did. Raises CarryingEndedError, ChannelError or WireError."""
        call = self._dial()
        outgoing = self._end.begin()
        writing = asyncio.get_running_loop().create_task(_write(call, outgoing), name="attachment: write")
        self._under_way = call, outgoing
        try:
            return await self._read(call)
        except grpc.aio.AioRpcError as error:
            await self._refused(error)
            return error.details() or error.code().name
        finally:
            self._under_way = None
            self._end.broke()
            writing.cancel()
            call.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    async def _read(self, call: Stream) -> str:
        while True:
            message: Any = await call.read()
            if message is grpc.aio.EOF:
                return await call.details() or "the relay ended the stream"
            if self._broken_since is not None:
                self._broken_since, self._renewed, self._begun = None, False, True
                self._on_break("")
            self._end.hear(channel_message_from_wire(message))

    async def _refused(self, error: grpc.aio.AioRpcError) -> None:
        """Raise CarryingEndedError where no further try would go better; gets another ticket where that helps."""
        code, said = error.code(), error.details() or error.code().name
        if code is grpc.StatusCode.UNAUTHENTICATED:
            if self._renew is None or self._renewed:
                raise CarryingEndedError(said) from None
            self._renewed = True
            try:
                await self._renew()
            except MusterError as refusal:
                raise CarryingEndedError(str(refusal), closed=isinstance(refusal, PermissionDeniedError)) from None
        elif code in _FINAL or (code in _FINAL_AT_FIRST and not self._begun):
            raise CarryingEndedError(said, closed=code is grpc.StatusCode.PERMISSION_DENIED) from None


async def _write(call: Stream, outgoing: Outgoing) -> None:
    """The only writer of a stream; whoever reads hears of its end."""
    with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        while True:
            message = await outgoing.get()
            await call.write(channel_message_to_wire(message))
            outgoing.task_done()


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"  # noqa: PLR2004 - a minute
