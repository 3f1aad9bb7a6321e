"""The gate: every call passes here behind admission, is told what its caller should know, and ends when that must be.

Admission says who calls. The services ask whether the caller may; the gate asks for those calls that only nodes make.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import grpc.aio

from coordinator.clock import wall_time
from coordinator.rpc.callers import Context, caller
from coordinator.rpc.calls import OPERATIONS, PUBLIC, operation_of
from coordinator.rpc.refusals import fail
from coordinator.service.causes import Cause
from coordinator.service.operations import Operations
from coordinator.service.rules import RULES, AccessScope
from coordinator.trust.caller import Caller
from coordinator.trust.registry import Registry
from muster.domain.errors import MusterError
from muster.domain.ids import NodeId
from muster.rpc.notices import AUTHORITIES, TOKEN_ENDS

Handler = Callable[[Any, Context], Awaitable[Any]]

_STATUSES = {status.value[0]: status for status in grpc.StatusCode}


class Gate(grpc.aio.ServerInterceptor):
    """Stands before all services of one server, behind admission."""

    def __init__(self, registry: Registry, operations: Operations) -> None:
        self._registry = registry
        self._operations = operations
        self.authorities: Callable[[], str] = str
        """Gives the digest of the authorities that count, for clients that may know others; empty: nothing to tell."""
        self._streams: dict[object, tuple[Caller, Callable[[], None]]] = {}

    async def intercept_service(self, continuation: Any, details: Any) -> Any:  # noqa: ANN401 - as gRPC has it
        """The handler of a call, behind the gate."""
        handler = await continuation(details)
        if handler is None or details.method in PUBLIC:
            return handler
        return _Call(self, details.method).guarded(handler)

    def look_again(self, node: NodeId | None) -> None:
        """End the streams of those who would not be let in any more: of a node, or with None of anybody.

        While the authority changes, thousands of nodes change their keys one after the other.
        """
        now = wall_time()
        for held, end in list(self._streams.values()):
            if (node is None or held.node == node) and not self._registry.still_counts(held, now):
                end()

    def notices(self, who: Caller) -> Iterator[tuple[str, str]]:
        """Metadata that tell a caller what it should know, whatever it asked."""
        if who.warned_from is not None and who.until is not None and who.warned_from <= wall_time():
            yield TOKEN_ENDS, who.until.isoformat()
        if authorities := self.authorities():
            yield AUTHORITIES, authorities

    def refused(self, who: Caller, method: str, result: str) -> None:
        """Write down that somebody was refused whose message says nothing of it."""
        self._operations.refused(who, operation_of(method), result)

    async def of_a_node(self, operation: str, answer: Handler, request: Any, context: Context) -> Any:  # noqa: ANN401 - messages of every call
        """Answer a call that only nodes make; its service ends it with a status of gRPC where it fails."""
        try:
            async with self._operations.begin(caller(), operation, caller().node or "") as begun:
                try:
                    return await answer(request, context)
                except grpc.aio.AbortError:
                    begun.failed_because(_cause(context), _details(context))
                    raise
        except MusterError as error:
            await fail(context, error)

    @contextmanager
    def holding(self, who: Caller, end: Callable[[], None]) -> Iterator[None]:
        """While a stream is open, `end` is called as soon as its caller does not count any more."""
        key = object()
        self._streams[key] = (who, end)
        timer = None
        if who.until is not None:
            timer = asyncio.get_running_loop().call_later(max(0.0, (who.until - wall_time()).total_seconds()), end)
        try:
            yield
        finally:
            del self._streams[key]
            if timer is not None:
                timer.cancel()


class _Call:
    """One kind of call on its way through the gate."""

    def __init__(self, gate: Gate, method: str) -> None:
        self._gate = gate
        self._method = method
        self._operation = OPERATIONS.get(method)
        self._of_nodes = self._operation is not None and RULES[self._operation].scope is AccessScope.NODE

    def guarded(self, handler: Any) -> Any:  # noqa: ANN401 - as gRPC has it
        """The handler of calls that the coordinator knows."""
        kind = _kind(handler)
        answer = getattr(handler, kind)
        served = answer if kind == "unary_unary" else self._while_it_counts(answer)

        async def guard(request: Any, context: Context) -> Any:  # noqa: ANN401 - messages of every call
            if notices := tuple(self._gate.notices(caller())):
                context.set_trailing_metadata(notices)
            if self._operation is None:
                self._gate.refused(caller(), self._method, "no operation")
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, "nobody may do that")
            if self._of_nodes:
                return await self._gate.of_a_node(self._operation, served, request, context)
            return await served(request, context)

        return _KINDS[kind](guard, handler.request_deserializer, handler.response_serializer)

    def _while_it_counts(self, answer: Handler) -> Handler:
        """The handler of a stream, ended when its caller loses the right to it."""

        async def held(request: Any, context: Context) -> Any:  # noqa: ANN401 - messages of every call
            own, lost, response = asyncio.current_task(), False, None
            assert own is not None

            def end() -> None:
                nonlocal lost
                lost = True
                own.cancel()

            try:
                with self._gate.holding(caller(), end):
                    response = await answer(request, context)
            except asyncio.CancelledError:
                if not lost:
                    raise
                own.uncancel()
            if lost:
                self._gate.refused(caller(), self._method, "stream ended: revoked, changed or expired")
                with suppress(grpc.aio.InternalError):
                    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "what you have shown counts no more")
            return response

        return held


_KINDS: Mapping[str, Any] = {
    "unary_unary": grpc.unary_unary_rpc_method_handler,
    "unary_stream": grpc.unary_stream_rpc_method_handler,
    "stream_unary": grpc.stream_unary_rpc_method_handler,
    "stream_stream": grpc.stream_stream_rpc_method_handler,
}


def _kind(handler: Any) -> str:  # noqa: ANN401 - as gRPC has it
    return next(kind for kind in _KINDS if getattr(handler, kind))


def _cause(context: Context) -> Cause:
    code: Any = context.code()
    status = code if isinstance(code, grpc.StatusCode) else _STATUSES.get(code or 0, grpc.StatusCode.UNKNOWN)
    return Cause.__members__.get(status.name, Cause.INTERNAL)


def _details(context: Context) -> str:
    details: Any = context.details()
    return details.decode(errors="replace") if isinstance(details, bytes) else str(details)
