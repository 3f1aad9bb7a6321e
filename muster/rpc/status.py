"""What a gRPC status means to a client: one table from status code to error."""

from collections.abc import Mapping

import grpc
import grpc.aio

from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    MusterError,
    NotSignedInError,
    PermissionDeniedError,
    UnavailableError,
    UnknownNameError,
)

ERRORS: Mapping[grpc.StatusCode, type[MusterError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidJobError,
    grpc.StatusCode.NOT_FOUND: UnknownNameError,
    grpc.StatusCode.FAILED_PRECONDITION: ConflictError,
    grpc.StatusCode.ALREADY_EXISTS: ConflictError,
    grpc.StatusCode.ABORTED: ConflictError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ExhaustedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    # So a stream ends when the coordinator shuts down.
    grpc.StatusCode.CANCELLED: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: UnavailableError,
    grpc.StatusCode.UNAUTHENTICATED: NotSignedInError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
}
"""Statuses that are not listed are faults of the coordinator and become a plain MusterError."""


UNKNOWN_AUTHORITY = "CERTIFICATE_VERIFY_FAILED"
"""What the TLS of gRPC says of a certificate that no authority has signed that is trusted."""


def reason_lost(error: grpc.aio.AioRpcError) -> bool:
    """Whether the other side ended a call while something was being sent, and gRPC has lost why.

    So it is now and then where a stream is refused at once; whoever calls again hears the reason as a rule.
    """
    return error.code() is grpc.StatusCode.INTERNAL and error.details() == "Internal error from Core"


def error_from(status: grpc.StatusCode, details: str, *, address: str) -> MusterError:
    """The error that a call to the coordinator at `address` ended with."""
    error = ERRORS.get(status)
    if error is None:
        return MusterError(f"the coordinator at {address} failed ({status.name}): {details}")
    if status in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
        return _of(address, error(_nobody_answers(address, details)))
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        return _of(address, error(f"the coordinator at {address} did not answer in time"))
    return error(details)


def _of(address: str, error: MusterError) -> MusterError:
    """The error, which says who was asked."""
    if isinstance(error, UnavailableError):
        error.address = address
    return error


def _nobody_answers(address: str, details: str) -> str:
    if UNKNOWN_AUTHORITY in details:
        return (
            f"who answers at {address} shows a certificate of an authority that is not known here. If the fleet's "
            f"authority was changed, `muster login {address}` learns the new one [{details}]"
        )
    # A refused connection needs no more words; a failed TLS handshake or an unknown name does.
    cause = "" if "onnection refused" in details or not details else f" [{details}]"
    return (
        f"no coordinator answers at {address}; is it running? "
        f"(`muster up` starts one here; MUSTER_COORDINATOR or --coordinator names another){cause}"
    )
