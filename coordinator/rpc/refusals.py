"""What a refusal or an error looks like on the wire: one table from cause to gRPC status."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio

from coordinator.core.answers import RefusalCause, Refused
from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    MusterError,
    PermissionDeniedError,
    UnavailableError,
    UnknownNameError,
)
from muster.trust.certificates import CertificateError
from muster.trust.tokens import TokenFormError
from muster.wire import WireError

_CAUSES: Mapping[RefusalCause, grpc.StatusCode] = {
    RefusalCause.UNKNOWN: grpc.StatusCode.NOT_FOUND,
    RefusalCause.CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalCause.IMPOSSIBLE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalCause.EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
}

_ERRORS: Mapping[type[MusterError], grpc.StatusCode] = {
    WireError: grpc.StatusCode.INVALID_ARGUMENT,
    InvalidJobError: grpc.StatusCode.INVALID_ARGUMENT,
    UnknownNameError: grpc.StatusCode.NOT_FOUND,
    ConflictError: grpc.StatusCode.FAILED_PRECONDITION,
    ExhaustedError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    PermissionDeniedError: grpc.StatusCode.PERMISSION_DENIED,
    UnavailableError: grpc.StatusCode.UNAVAILABLE,
    CertificateError: grpc.StatusCode.INVALID_ARGUMENT,
    TokenFormError: grpc.StatusCode.INVALID_ARGUMENT,
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


def status_of(error: MusterError) -> grpc.StatusCode:
    """The status for an error; errors that are not in the table are faults of the coordinator."""
    return next((status for kind, status in _ERRORS.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
