"""The interceptor that admits calls: it stands before all services of a listener, the gate included."""

import asyncio
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import grpc
import grpc.aio

from coordinator.clock import boot_time, wall_time
from coordinator.rpc.admission.messages import (
    LateMessageError,
    LongMessageError,
    MalformedError,
    MessageReader,
    Messages,
    Parse,
    StrangersMessages,
    parsed,
)
from coordinator.rpc.admission.open_calls import Bounds, CallSeat, OpenCalls
from coordinator.rpc.admission.turns import Reading
from coordinator.rpc.callers import CALLER, Context, Who, caller
from coordinator.rpc.pace import Pace
from coordinator.rpc.refusals import fail
from coordinator.service.causes import TooFastError
from coordinator.trust.caller import STRANGER, Caller, RefusedError
from coordinator.trust.places import place_of
from coordinator.tuning.memory import Leftovers
from muster.domain.errors import MusterError

log = logging.getLogger(__name__)

_METADATA: ContextVar[Sequence[tuple[str, str]]] = ContextVar("metadata")
"""What came with the call that is being admitted; from its context gRPC would make it a second time."""
STALE = 1.0
"""Seconds after which a caller is looked at again whose message comes late: the token may have been revoked."""
STRANGERS_MESSAGE = 16 * 1024
"""Bytes of one message of a stranger; a request for a certificate has 400."""

Refused = Callable[[Caller, str, str], None]
"""Hears of each refusal: whose, at which call, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicy:
    """Rules of a listener: which callers it lets in, and how much each may hold open."""

    who: Who
    public: Callable[[str], bool]
    """Whether strangers may make a call."""
    bounds: Bounds
    known: Reading
    """How messages of callers are read that the listener knows."""
    strangers: Reading
    """How messages of strangers are read."""


class Admission(grpc.aio.ServerInterceptor):
    """Lets callers in, or answers at once without a look at their message.

    Every call is served as a stream of messages, whatever it is to its service, because gRPC gives a stream to its
    handler before anything of it has arrived. Services find the caller in `callers`, and their request as ever.
    """

    def __init__(self, policy: AdmissionPolicy, pace: Pace, refused: Refused) -> None:
        self.policy = policy
        self.pace = pace
        self.refused = refused
        self.open = OpenCalls(policy.bounds)
        self.known = MessageReader(policy.known)
        self.strangers = MessageReader(policy.strangers)
        self.leftovers = Leftovers()
        self._handlers: dict[str, Any] = {}

    async def intercept_service(self, continuation: Any, details: Any) -> Any:  # noqa: ANN401 - as gRPC has it
        """The handler of a call, behind admission; made once for each call that there is."""
        _METADATA.set(details.invocation_metadata)
        made = self._handlers.get(details.method)
        if made is None:
            handler = await continuation(details)
            if handler is None:
                return None
            made = self._handlers[details.method] = self._admitting(details.method, handler)
        return made

    def _admitting(self, method: str, handler: Any) -> Any:  # noqa: ANN401 - as gRPC has it
        kind = next(kind for kind in _KINDS if getattr(handler, kind))
        make = (
            grpc.stream_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
        call = (_PublicCall if self.policy.public(method) else _KnownCall)(
            self, method, getattr(handler, kind), handler
        )
        return make(call.answered, None, handler.response_serializer)


class _Call(ABC):
    """One kind of call on its way through admission."""

    def __init__(self, admission: Admission, method: str, answer: Any, handler: Any) -> None:  # noqa: ANN401 - messages of every call
        self._admission = admission
        self._method = method
        self._answer = answer
        self._generates = inspect.isasyncgenfunction(answer)
        self._one = not handler.request_streaming
        self._is_stream = handler.request_streaming or handler.response_streaming
        self._bytes_parsed: Parse = handler.request_deserializer

    @abstractmethod
    def _let_in(self, context: Context) -> CallSeat:
        """The caller, not counted yet; raises RefusedError or TooFastError."""

    @abstractmethod
    async def _read(self, seat: CallSeat, context: Context) -> bytes | None:
        """The next message, None at the end; raises LateMessageError or ExhaustedError."""

    @abstractmethod
    def _messages(self, seat: CallSeat, context: Context, parse: Parse) -> Messages:
        """All messages of a stream."""

    async def answered(self, _: Any, context: Context) -> Any:  # noqa: ANN401 - messages of every call
        """Let the caller in, read the message, and have the service answer."""
        try:
            return await self._served(context)
        except (grpc.aio.AbortError, asyncio.CancelledError) as error:
            # Such an error refers to the frames of the call, and these refer to it, or to gRPC's state of the call,
            # which keeps it. A circle outlives the call, and Python hardly ever looks for one among old objects.
            error.__traceback__ = error.__context__ = None
            if isinstance(error, asyncio.CancelledError):
                raise
            return None  # gRPC has sent the status, and raises the error by itself

    async def _served(self, context: Context) -> Any:  # noqa: ANN401 - messages of every call
        open_calls = self._admission.open
        try:
            seat = self._let_in(context)
            open_calls.enter(seat)
        except MusterError as error:
            return await self._refuse(context, error)
        CALLER.set(seat.who)
        try:
            if self._one:
                request = await self._message(seat, context)
            else:
                request = self._messages(seat, context, lambda message: self._parsed(context, message))
            if not self._generates:
                return await self._answer(request, context)
            async for message in self._answer(request, context):
                await context.write(message)
        except (LateMessageError, MalformedError, LongMessageError, RefusedError, TooFastError) as error:
            return await self._refuse(context, error)
        finally:
            open_calls.leave(seat)
        return None

    async def _message(self, seat: CallSeat, context: Context) -> Any:  # noqa: ANN401 - any message
        message = await self._read(seat, context)
        if message is None:
            raise MalformedError("the call", "ended without its message")
        return self._parsed(context, message)

    def _parsed(self, context: Context, message: bytes) -> Any:  # noqa: ANN401 - any message
        try:
            return parsed(self._bytes_parsed, message)
        except MalformedError:
            log.warning("malformed message", extra={"peer": context.peer(), "call": self._method})
            self._note(context, "malformed message")
            raise

    def _note(self, context: Context, result: str) -> None:
        """Have a refusal written down; nobody may have said yet who calls."""
        self._admission.refused(replace(caller(), origin=str(context.peer())), self._method, result)

    async def _refuse(self, context: Context, error: MusterError) -> None:
        self._admission.leftovers.one_more()
        # Whoever is gone by now is told nothing, and that is nobody's error.
        with suppress(grpc.aio.InternalError):
            if isinstance(error, RefusedError):
                self._note(context, f"{error.cause} {error.who}".strip())
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
            cause = next((cause for kind, cause in _CAUSES.items() if isinstance(error, kind)), "")
            if cause:
                self._note(context, cause)
            await fail(context, error)


class _KnownCall(_Call):
    """A call that only those can make whom the listener knows."""

    def _let_in(self, context: Context) -> CallSeat:
        who = self._recognised(context)
        self._admission.pace.known(who)
        return CallSeat(who, "", self._is_stream)

    async def _read(self, seat: CallSeat, context: Context) -> bytes | None:
        began = boot_time()
        message = await self._admission.known.read(context, seat.who.name, seat.who)
        if boot_time() - began >= STALE:
            CALLER.set(self._recognised(context))
        return message

    def _recognised(self, context: Context) -> Caller:
        admission = self._admission
        try:
            return admission.policy.who(dict(_METADATA.get()), context, wall_time())
        except RefusedError:
            admission.pace.wrong(str(context.peer()))
            raise

    def _messages(self, seat: CallSeat, context: Context, parse: Parse) -> Messages:  # noqa: ARG002 - streams are read in another way
        return Messages(context, parse)


class _PublicCall(_Call):
    """A call that strangers can make."""

    def _let_in(self, context: Context) -> CallSeat:
        peer = str(context.peer())
        self._admission.pace.stranger(peer, self._method)
        return CallSeat(replace(STRANGER, origin=peer), place_of(peer), self._is_stream)

    async def _read(self, seat: CallSeat, context: Context) -> bytes | None:
        message = await self._admission.strangers.read(context, seat.place, seat.who)
        if message is not None and len(message) > STRANGERS_MESSAGE:
            raise LongMessageError(f"before a login a message has {STRANGERS_MESSAGE} bytes at most")
        return message

    def _messages(self, seat: CallSeat, context: Context, parse: Parse) -> Messages:
        return StrangersMessages(context, parse, lambda: self._read(seat, context))


_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
_CAUSES: Mapping[type[MusterError], str] = {
    TooFastError: "too fast",
    LateMessageError: "message did not arrive",
    LongMessageError: "message too long",
}
