"""What a refusal or an error looks like on the wire: one table from cause to gRPC status."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio

from coordinator.core.answers import RefusalCause, Refused
from coordinator.rpc.pace import TooFastError
from coordinator.store.store import StoreError
from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    MusterError,
    PermissionDeniedError,
    UnavailableError,
    UnknownNameError,
)
from muster.trust.identity import CertificateError
from muster.trust.tokens import TokenFormError
from muster.wire import WireError

_CAUSES: Mapping[RefusalCause, grpc.StatusCode] = {
    RefusalCause.UNKNOWN: grpc.StatusCode.NOT_FOUND,
    RefusalCause.CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalCause.IMPOSSIBLE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalCause.EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalCause.TAKEN: grpc.StatusCode.ALREADY_EXISTS,
}

_ERRORS: Mapping[type[MusterError], grpc.StatusCode] = {
    WireError: grpc.StatusCode.INVALID_ARGUMENT,
    InvalidJobError: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownNameError: grpc.StatusCode.NOT_FOUND,
    ConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    ExhaustedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    StoreError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    PermissionDeniedError: grpc.StatusCode.PERMISSION_DENIED,
    UnavailableError: grpc.StatusCode.UNAVAILABLE,
    CertificateError: grpc.StatusCode.INVALID_ARGUMENT,
    TokenFormError: grpc.StatusCode.INVALID_ARGUMENT,
}

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])


DETAILS = 6_000
"""Most bytes of the text of a status. It travels in a header, and of a larger one a client sees nothing."""
_MORE = 40
"""Of these for how many nodes are not listed."""
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}


async def refuse(context: "grpc.aio.ServicerContext[Any, Any]", refused: Refused) -> NoReturn:
    """End a call with a refusal, the reasons of as many nodes included as can be told."""
    await context.abort(status_of_refusal(refused), told(refused))
    raise AssertionError("abort returned")


def status_of_refusal(refused: Refused) -> grpc.StatusCode:
    """The status for a refusal."""
    return _CAUSES[refused.cause]


def told(refused: Refused) -> str:
    """A refusal as text for a status, with the reasons of as many nodes as fit."""
    lines, room = [refused.message], DETAILS - _MORE - _length(refused.message)
    for refusal in refused.refusals:
        line = f"  {refusal.node} {refusal.reason}"
        room -= _length(f"\n{line}")
        if room < 0:
            lines.append(f"  and {len(refused.refusals) - len(lines) + 1} nodes more")
            break
        lines.append(line)
    return fitting("\n".join(lines))


async def fail(context: "grpc.aio.ServicerContext[Any, Any]", error: MusterError) -> NoReturn:
    """End a call with an error; where that is about pace, `retry-after` says when to try again, in seconds."""
    hint = (("retry-after", str(error.retry_after)),) if isinstance(error, TooFastError) else ()
    await context.abort(status_of(error), fitting(str(error)), hint)
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
    async def wrapper(self: object, request: object, context: "grpc.aio.ServicerContext[Any, Any]") -> Any:  # noqa: ANN401
        try:
            return await handler(self, request, context)
        except MusterError as error:
            await fail(context, error)

    return wrapper  # type: ignore[return-value]  # the same signature, which ParamSpec cannot say for methods


def status_of(error: MusterError) -> grpc.StatusCode:
    """The status for an error; errors that are not in the table are faults of the coordinator."""
    return next((status for kind, status in _ERRORS.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
