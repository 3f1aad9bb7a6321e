"""Long-lived streams: how messages go out on them, and how they end."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from functools import wraps
from typing import Any, Protocol

import grpc
import grpc.aio

from coordinator.rpc.refusals import Handler, fitting, status_of
from muster.domain.errors import ExhaustedError, MusterError

log = logging.getLogger(__name__)

LAST_WRITE = 0.5
"""Seconds that a stream which is to end waits for the message that is on its way."""


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
            group.__traceback__ = None  # its frames refer to it, and to all that the stream had
        except asyncio.CancelledError as cancelled:
            cancelled.__traceback__ = None  # the same
            raise
        else:
            return
        try:
            status, reason = _ending(cause)
        finally:
            del cause  # what is raised would refer to itself
        # A status that cannot be sent, because the peer is gone or does not read, is nobody's error.
        with suppress(grpc.aio.InternalError):
            await context.abort(status, fitting(reason))

    return wrapper  # type: ignore[return-value]  # the same signature, which ParamSpec cannot say for methods


async def offer(context: "grpc.aio.ServicerContext[Any, Any]", message: object, patience: float) -> None:
    """Write a message to a reader; raises ExhaustedError for one that does not make room for it in so many seconds."""
    try:
        async with asyncio.timeout(patience):
            await send(context, message)
    except TimeoutError:
        log.info("a reader that does not read is cut off", extra={"peer": context.peer()})
        raise ExhaustedError(f"nothing was read for {patience:g} s, so the coordinator stopped sending") from None


async def send(context: "grpc.aio.ServicerContext[Any, Any]", message: object) -> None:
    """Write a message; who is cancelled meanwhile still waits for it, as gRPC takes no status before."""
    writing = asyncio.ensure_future(context.write(message))
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WRITE):
                await asyncio.gather(writing, return_exceptions=True)
        raise
    finally:
        del writing  # what it raises would refer to itself


def _ending(cause: Exception) -> tuple[grpc.StatusCode, str]:
    """The status and the reason for a stream that ended so; raises what is not for us to answer."""
    try:
        if isinstance(cause, _ServerStopsError):
            return grpc.StatusCode.UNAVAILABLE, "the coordinator is shutting down"
        if isinstance(cause, MusterError):
            return status_of(cause), str(cause)
        raise cause
    finally:
        del cause  # what is raised would refer to itself


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
