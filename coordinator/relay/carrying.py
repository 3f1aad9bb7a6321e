"""The streams of the relay: let in by ticket, joined, and moved frame by frame as bytes that nobody reads."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime

import grpc
import grpc.aio

from coordinator.relay.joining import OTHER_SIDE_WITHIN, RELAY_FULL, Admitted, JoinTable, StreamEnd, TurnedAway
from coordinator.relay.pace import RelayPace
from muster.rpc.relay import CARRY_METHOD, ENDING_METADATA, RELAY_STATUS, TICKET_METADATA, RelayEnding
from muster.trust.tickets import AttachmentTicket, TicketError, read_ticket

log = logging.getLogger(__name__)

CarryContext = grpc.aio.ServicerContext[bytes, bytes]

_AGAIN_IN = "5"
"""Seconds after which it is worth trying again where the relay is full."""


class _Stream:
    """One stream that was let in."""

    def __init__(self, context: CarryContext, number: int, account: str) -> None:
        self.context = context
        self.number = number
        self.account = account
        self.peer: asyncio.Future[_Stream] = asyncio.get_running_loop().create_future()
        """The stream that it is joined to."""
        self.end: asyncio.Future[StreamEnd] = asyncio.get_running_loop().create_future()
        """How it ends, once that is decided; cancelled where its side has broken off."""
        self.idle = asyncio.Event()
        """Set while nothing is being written to it: gRPC loses a status that is sent meanwhile."""
        self.idle.set()

    async def write(self, frame: bytes) -> None:
        """Send a frame to the side; never to be cancelled half-way."""
        self.idle.clear()
        try:
            await self.context.write(frame)
        finally:
            self.idle.set()


class Carrier(grpc.GenericRpcHandler):
    """Serves the call `Carry` without knowing what is in its frames."""

    def __init__(
        self,
        table: JoinTable,
        pace: RelayPace,
        key: Callable[[], bytes],
        clock: Callable[[], datetime],
        stir: Callable[[], None],
    ) -> None:
        """`key` gives the key of tickets; `stir` is called when a stream has come or gone."""
        self._table = table
        self._pace = pace
        self._key = key
        self._clock = clock
        self._stir = stir
        self._streams: dict[int, _Stream] = {}
        self._moving: set[asyncio.Task[None]] = set()
        self._turned_away = 0
        self._stopping = False
        # Without serializers messages stay the bytes that they are.
        self._handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._carry)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        """The handler of a call; None: there is no such call."""
        return self._handler if handler_call_details.method == CARRY_METHOD else None

    def end(self, ends: Iterable[StreamEnd]) -> None:
        """Have streams end."""
        for each in ends:
            stream = self._streams.get(each.stream)
            if stream is not None and not stream.end.done():
                stream.end.set_result(each)

    def stop(self) -> None:
        """Let nobody in any more, and have all streams end so that their sides come again."""
        self._stopping = True
        self.end(StreamEnd(stream=each, ending=RelayEnding.STOPPING, text=_STOPPING) for each in self._streams)

    def turned_away(self) -> int:
        """Streams that were not let in since this was asked last."""
        count, self._turned_away = self._turned_away, 0
        return count

    async def _carry(self, frames: object, context: CarryContext) -> None:
        del frames  # which are read from the context one by one
        match self._admitted(context):
            case TurnedAway() as refused:
                self._turned_away += 1
                await _abort(context, refused.ending, refused.text)
            case Admitted() as admitted:
                await self._serve(context, admitted)

    def _admitted(self, context: CarryContext) -> Admitted | TurnedAway:
        if self._stopping:
            return TurnedAway(ending=RelayEnding.STOPPING, text=_STOPPING)
        if (
            len(self._streams) >= 2 * self._table.most_streams
        ):  # half of them have been told to end, and do not read that
            return TurnedAway(ending=RelayEnding.FULL, text=RELAY_FULL)
        try:
            ticket = read_ticket(self._key(), _shown(context))
        except TicketError as error:
            return TurnedAway(ending=RelayEnding.REFUSED, text=str(error))
        answer = self._table.arrive(ticket, self._clock())
        _note(ticket, answer)
        return answer

    async def _serve(self, context: CarryContext, admitted: Admitted) -> None:
        stream = self._streams[admitted.stream] = _Stream(context, admitted.stream, admitted.account)
        self.end(admitted.ends)
        if admitted.peer is not None:
            peer = self._streams[admitted.peer]
            peer.peer.set_result(stream)
            stream.peer.set_result(peer)
        # It ends by itself when the call has; it may be writing to the other side meanwhile.
        moving = asyncio.create_task(self._move(stream), name=f"move frames of stream {stream.number}")
        self._moving.add(moving)
        moving.add_done_callback(self._moving.discard)
        self._stir()
        try:
            end = await stream.end
            await stream.idle.wait()
        finally:
            # Also where the side has broken off: then this task was cancelled.
            self.end(self._table.leave(stream.number, self._clock()))
            del self._streams[stream.number]
            self._pace.forget(asyncio.get_running_loop().time())
            self._stir()
        await _abort(context, end.ending, end.text)

    async def _move(self, stream: _Stream) -> None:
        """Move what one side sends to the other, until it has ended or the other is gone."""
        try:
            peer = await self._peer_of(stream)
            if peer is None:
                return
            read, moved, pace, clock = (
                stream.context.read,
                self._table.moved,
                self._pace,
                asyncio.get_running_loop().time,
            )
            while not stream.end.done() and isinstance(frame := await read(), bytes):  # else it is the mark of the end
                if peer.end.done():
                    return
                await peer.write(frame)
                moved(stream.number, len(frame))
                if rest := pace.moved(stream.account, len(frame), clock()):
                    await asyncio.wait({stream.end}, timeout=rest)
        except (grpc.RpcError, grpc.aio.UsageError, grpc.aio.AbortError):
            return  # a call is over; its own task hears of it, and ends the other one
        except Exception:  # the other streams go on
            log.exception("frames cannot be moved")
        # A side that breaks off looks like one that ends in order: the other one has all that was said, and comes again
        # if there is more to say.
        ends = self._table.leave(stream.number, self._clock())
        self.end((*ends, StreamEnd(stream=stream.number, ending=RelayEnding.ENDED, text="")))

    async def _peer_of(self, stream: _Stream) -> _Stream | None:
        """The stream of the other side, or None where that does not come in time or this one ends before."""
        either: set[asyncio.Future[_Stream] | asyncio.Future[StreamEnd]] = {stream.peer, stream.end}
        await asyncio.wait(either, timeout=OTHER_SIDE_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        if stream.peer.done():
            return stream.peer.result()
        self.end(self._table.given_up(stream.number, self._clock()))
        return None


_STOPPING = "the relay stops, and is back soon; come again"


def _shown(context: CarryContext) -> str:
    """The ticket in the metadata."""
    for name, value in context.invocation_metadata() or ():
        if name == TICKET_METADATA and isinstance(value, str):
            return value
    raise TicketError("the relay wants to be shown a ticket, which the coordinator gives out; show it as muster-ticket")


async def _abort(context: CarryContext, ending: RelayEnding, text: str) -> None:
    """End a call; a stream that has come to its end in order ends without an error."""
    how = [(ENDING_METADATA, ending.value)]
    if ending is RelayEnding.ENDED:
        context.set_trailing_metadata(tuple(how))
        return
    if ending is RelayEnding.FULL:
        how.append(("retry-after", _AGAIN_IN))
    await context.abort(RELAY_STATUS[ending], text, tuple(how))


def _note(ticket: AttachmentTicket, answer: Admitted | TurnedAway) -> None:
    log.debug(
        "stream let in" if isinstance(answer, Admitted) else "stream turned away",
        extra={"attachment": ticket.attachment, "side": ticket.side, "account": ticket.account, "node": ticket.node},
    )
