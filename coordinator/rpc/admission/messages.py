"""Messages as they are read at a listener: in their turn, within a limit of time, and taken apart here."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio
from google.protobuf.message import DecodeError

from coordinator.rpc.admission.turns import Reading, Turns
from coordinator.rpc.callers import Context
from coordinator.trust.caller import Caller
from coordinator.tuning.memory import Leftovers
from muster.domain.errors import ExhaustedError
from muster.domain.fleet.access import Access
from muster.wire import WireError

MANY_LOST_MESSAGES = 4
"""Messages that did not come whole; what was there of so many is worth giving back to the system."""
TRIM_DELAY = 2.0
"""Seconds until then; gRPC closes the connections before."""

Parse = Callable[[bytes], Any]


class LateMessageError(ExhaustedError):
    """A message did not arrive in time."""


class LongMessageError(ExhaustedError):
    """A message is longer than its caller may send."""


class MessageReader:
    """Reads one message for whoever asks, as many at a time as the turns allow."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._turns = Turns[str, "asyncio.Future[None]"](reading)
        self._reads: dict[_Read, None] = {}
        """Messages that are being read, ordered by when they began."""
        self._alarm: asyncio.TimerHandle | None = None
        """One timer for all of them: one for each message would cost more than all else that admission does."""
        self._leftovers = Leftovers(many=MANY_LOST_MESSAGES, later=TRIM_DELAY)

    async def read(self, context: Context, key: str, who: Caller) -> bytes | None:
        """The next message of a call, None at its end; raises LateMessageError."""
        turns = self._turns
        if not turns.take(key) and not (who.may(Access.ADMIN) and turns.take(key, first=True)):
            await self._turn(key)
        read = _Read(turns.patience)
        self._reads[read] = None
        if self._alarm is None or read.until < self._alarm.when():
            self._set_alarm(read.until)
        try:
            message: Any = await context.read()
        except asyncio.CancelledError:
            self._leftovers.one_more()
            if not read.late or read.reader.uncancel():
                raise
            raise LateMessageError(f"the message of the call did not arrive within {read.within:g} s") from None
        finally:
            del self._reads[read]
            self._leave(key)
        if not isinstance(message, bytes):  # the end of the call
            self._leftovers.one_more()
            return None
        return message

    def _set_alarm(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_at(at, self._look)

    def _look(self) -> None:
        now, self._alarm = asyncio.get_running_loop().time(), None
        for read in self._reads:
            if read.until <= now:
                read.end()
        if left := [read.until for read in self._reads if not read.late]:
            self._set_alarm(min(left))

    async def _turn(self, key: str) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._turns.wait(key, waiter)
        try:
            async with asyncio.timeout(self._reading.line):
                await waiter
        except (TimeoutError, asyncio.CancelledError) as error:
            if waiter.done() and not waiter.cancelled():
                self._leave(key)
            else:
                self._turns.give_up(key, waiter)
            if isinstance(error, TimeoutError):
                raise LateMessageError("too many messages are on their way at this moment; try again") from None
            raise

    def _leave(self, key: str) -> None:
        following = self._turns.leave(key)
        while following is not None:
            whose, waiter = following
            if not waiter.done():
                waiter.set_result(None)
                return
            following = self._turns.leave(whose)  # the call has ended meanwhile


class _Read:
    """One message that is being read, by which call, and until when."""

    __slots__ = ("late", "reader", "until", "within")

    def __init__(self, within: float) -> None:
        reader = asyncio.current_task()
        assert reader is not None
        self.reader = reader
        self.within = within
        self.until = reader.get_loop().time() + within
        self.late = False

    def end(self) -> None:
        """Have the call go on without its message."""
        if not self.late:
            self.late = True
            self.reader.cancel()


class Messages:
    """The messages of a stream of somebody who is known, as a service reads them."""

    def __init__(self, context: Context, parse: Parse) -> None:
        self._context = context
        self._parse = parse

    def __aiter__(self) -> "Messages":
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - any message
        message: Any = await self._context.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return self._parse(message)


class StrangersMessages(Messages):
    """The messages of a stream of a stranger, who has to say each of them soon."""

    def __init__(self, context: Context, parse: Parse, read: Callable[[], Awaitable[bytes | None]]) -> None:
        super().__init__(context, parse)
        self._read = read

    async def __anext__(self) -> Any:  # noqa: ANN401 - any message
        message = await self._read()
        if message is None:
            raise StopAsyncIteration
        return self._parse(message)


class MalformedError(WireError):
    """What was sent is no message of the kind that the call takes."""


def parsed(parse: Parse, message: bytes) -> Any:  # noqa: ANN401 - any message
    """A message from its bytes; raises MalformedError."""
    try:
        return parse(message)
    except DecodeError:
        name = getattr(getattr(parse, "__self__", None), "__name__", "the message")
        raise MalformedError(name, "cannot be read: these bytes are no such message") from None
