"""What a refusal or an error looks like on the wire: one table from cause to gRPC status."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import wraps
from typing import Any, NoReturn, Protocol, TypeVar

import grpc
import grpc.aio

from coordinator.core.answers import RefusalCause, Refused
from muster.domain.errors import (
    ConflictError,
    InvalidJobError,
    MusterError,
    PermissionDeniedError,
    UnavailableError,
    UnknownNameError,
)
from muster.wire import WireError

_CAUSES: Mapping[RefusalCause, grpc.StatusCode] = {
    RefusalCause.UNKNOWN: grpc.StatusCode.NOT_FOUND,
    RefusalCause.CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalCause.IMPOSSIBLE: grpc.StatusCode.FAILED_PRECONDITION,
}

_ERRORS: Mapping[type[MusterError], grpc.StatusCode] = {
    WireError: grpc.StatusCode.INVALID_ARGUMENT,
    InvalidJobError: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownNameError: grpc.StatusCode.NOT_FOUND,
    ConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    PermissionDeniedError: grpc.StatusCode.PERMISSION_DENIED,
    UnavailableError: grpc.StatusCode.UNAVAILABLE,
}

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])


async def refuse(context: "grpc.aio.ServicerContext[Any, Any]", refused: Refused) -> NoReturn:
    """End a call with a refusal, the reason of every node included."""
    lines = [refused.message, *(f"  {refusal.node} {refusal.reason}" for refusal in refused.refusals)]
    await context.abort(_CAUSES[refused.cause], "\n".join(lines))
    raise AssertionError("abort returned")


def translated(handler: Handler) -> Handler:
    """A handler whose MusterErrors end the call with the status from the table."""

    @wraps(handler)
    async def wrapper(self: object, request: object, context: "grpc.aio.ServicerContext[Any, Any]") -> Any:  # noqa: ANN401
        try:
            return await handler(self, request, context)
        except MusterError as error:
            await context.abort(status_of(error), str(error))

    return wrapper  # type: ignore[return-value]  # the same signature, which ParamSpec cannot say for methods


class Closing(Protocol):
    """A service that can tell its streams to end."""

    closing: asyncio.Event


def streaming(handler: Handler) -> Handler:
    """A handler of a long-lived stream: as `translated`, and it ends by itself when the server is about to stop."""

    @wraps(handler)
    async def wrapper(self: Closing, request: object, context: "grpc.aio.ServicerContext[Any, Any]") -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                ending = tasks.create_task(_end(self.closing), name="end of stream")
                await handler(self, request, context)
                ending.cancel()
        except ExceptionGroup as group:
            cause = _most_telling(group)
        else:
            return
        if isinstance(cause, _ServerStopsError):
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the coordinator is shutting down")
        if isinstance(cause, MusterError):
            await context.abort(status_of(cause), str(cause))
        raise cause

    return wrapper  # type: ignore[return-value]  # the same signature, which ParamSpec cannot say for methods


def _most_telling(group: ExceptionGroup[Exception]) -> Exception:
    """Why a stream ended, out of all that went wrong when it did.

    gRPC expects its own errors as they are: AbortError after a status was sent, InternalError when the peer is gone.
    Anything else that is no MusterError nobody foresaw; gRPC logs it.
    """
    causes = list(_leaves(group))
    foreseen = (MusterError, _ServerStopsError, grpc.aio.AbortError, grpc.aio.InternalError)
    for kind in (grpc.aio.AbortError, MusterError, _ServerStopsError, grpc.aio.InternalError):
        for cause in causes:
            if isinstance(cause, kind) and all(isinstance(other, foreseen) for other in causes):
                return cause
    return group


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _end(closing: asyncio.Event) -> None:
    await closing.wait()
    raise _ServerStopsError


class _ServerStopsError(Exception):
    """Ends the tasks of a stream."""


def status_of(error: MusterError) -> grpc.StatusCode:
    """The status for an error; errors that are not in the table are faults of the coordinator."""
    return next((status for kind, status in _ERRORS.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
