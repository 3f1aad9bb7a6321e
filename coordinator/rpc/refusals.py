"""What an error looks like on the wire: the gRPC status of its cause, and a text that arrives."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio

from coordinator.core.answers import Refused
from coordinator.service.causes import NoNodeError, TooFastError, cause_of, error_of
from muster.domain.errors import MusterError
from muster.wire import WireError

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])


DETAILS = 6_000
"""Most bytes of the text of a status. It travels in a header, and of a larger one a client sees nothing."""
_MORE = 40
"""Bytes among these that say how many nodes are not listed."""
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}


async def refuse(context: "grpc.aio.ServicerContext[Any, Any]", refused: Refused) -> NoReturn:
    """End a call with a refusal, the reasons of as many nodes included as can be told."""
    await fail(context, error_of(refused))


def told(error: MusterError) -> str:
    """An error as text for a status, with the reasons of as many nodes as fit."""
    if not isinstance(error, NoNodeError):
        return fitting(str(error))
    lines = [str(error)]
    room = DETAILS - _MORE - _length(lines[0])
    for refusal in error.reasons:
        line = f"  {refusal.node} {refusal.reason}"
        room -= _length(f"\n{line}")
        if room < 0:
            lines.append(f"  and {len(error.reasons) - len(lines) + 1} nodes more")
            break
        lines.append(line)
    return fitting("\n".join(lines))


async def fail(context: "grpc.aio.ServicerContext[Any, Any]", error: MusterError) -> NoReturn:
    """End a call with an error; where that is about pace, `retry-after` says when to try again, in seconds."""
    hint = (("retry-after", str(error.retry_after)),) if isinstance(error, TooFastError) else ()
    await context.abort(status_of(error), told(error), hint)
    raise AssertionError("abort returned")


def fitting(text: str) -> str:
    """A text for a status, cut where it would be too long to arrive."""
    if _length(text[: DETAILS + 1]) <= DETAILS:
        return text
    kept, room = 0, DETAILS - _length("…")
    while (room := room - _length(text[kept])) >= 0:
        kept += 1
    return text[:kept] + "…"


def _length(text: str) -> int:
    """Bytes in a header, where what is not printable ASCII takes three each."""
    return sum(1 if byte in _PLAIN else 3 for byte in text.encode(errors="replace"))


def translated(handler: Handler) -> Handler:
    """A handler whose MusterErrors end the call with the status from the table."""

    @wraps(handler)
    async def wrapper(self: object, request: object, context: "grpc.aio.ServicerContext[Any, Any]") -> Any:  # noqa: ANN401 - messages of every call
        try:
            return await handler(self, request, context)
        except MusterError as error:
            await fail(context, error)

    return wrapper  # type: ignore[return-value]  # the same signature, which ParamSpec cannot say for methods


def status_of(error: MusterError) -> grpc.StatusCode:
    """The status for an error: that of its cause."""
    return grpc.StatusCode.INVALID_ARGUMENT if isinstance(error, WireError) else grpc.StatusCode[cause_of(error).name]
