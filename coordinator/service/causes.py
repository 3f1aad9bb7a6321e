"""Why an operation failed, as one word for each kind of error: every transport and the audit log use these words."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from coordinator.core.answers import Answer, RefusalCause, Refused
from coordinator.core.events import Event
from coordinator.engine.engine import Engine
from coordinator.store.store import StoreError
from coordinator.trust.caller import RefusedError
from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    MusterError,
    PermissionDeniedError,
    UnavailableError,
    UnknownNameError,
)
from muster.domain.jobs.explanation import NodeRefusal
from muster.trust.identity import CertificateError
from muster.trust.tokens import TokenFormError


class Cause(StrEnum):
    """Kinds of failures."""

    INVALID_ARGUMENT = "invalid_argument"  #: the request itself is wrong
    NOT_FOUND = "not_found"  #: there is nothing of that name
    ALREADY_EXISTS = "already_exists"  #: the name or key stands for something else
    FAILED_PRECONDITION = "failed_precondition"  #: the request does not fit the present state
    RESOURCE_EXHAUSTED = "resource_exhausted"  #: a limit is reached, or the disk is full
    UNAUTHENTICATED = "unauthenticated"  #: a token or certificate does not count
    PERMISSION_DENIED = "permission_denied"  #: the caller may not do that
    UNAVAILABLE = "unavailable"  #: somebody did not answer in time
    INTERNAL = "internal"  #: a fault of the coordinator


class TakenError(ConflictError):
    """The key of a submit stands for another job already."""


class TooFastError(ExhaustedError):
    """A caller calls more often than it may; the message says when to try again."""

    def __init__(self, what: str, wait: float) -> None:
        self.retry_after = max(1, -int(-wait // 1))
        """Whole seconds."""
        super().__init__(f"{what}; try again in {self.retry_after} s")


class NoNodeError(ConflictError):
    """No node could ever run the job; has a reason for each of them."""

    def __init__(self, message: str, reasons: tuple[NodeRefusal, ...]) -> None:
        super().__init__(message)
        self.reasons = reasons


_CAUSES: Mapping[type[MusterError], Cause] = {
    InvalidJobError: Cause.INVALID_ARGUMENT,
    CertificateError: Cause.INVALID_ARGUMENT,
    TokenFormError: Cause.INVALID_ARGUMENT,
    UnknownNameError: Cause.NOT_FOUND,
    TakenError: Cause.ALREADY_EXISTS,
    ConflictError: Cause.FAILED_PRECONDITION,
    ExhaustedError: Cause.RESOURCE_EXHAUSTED,
    StoreError: Cause.RESOURCE_EXHAUSTED,
    RefusedError: Cause.UNAUTHENTICATED,
    PermissionDeniedError: Cause.PERMISSION_DENIED,
    UnavailableError: Cause.UNAVAILABLE,
}
"""Causes by kind of error; a kind stands before those that it is a kind of."""


def cause_of(error: MusterError) -> Cause:
    """The cause of an error; kinds that the table does not have are faults of the coordinator."""
    return next((cause for kind, cause in _CAUSES.items() if isinstance(error, kind)), Cause.INTERNAL)


def error_of(refused: Refused) -> MusterError:
    """The error for a refusal of the core."""
    if refused.cause is RefusalCause.IMPOSSIBLE:
        return NoNodeError(refused.message, refused.refusals)
    return _ERRORS[refused.cause](refused.message)


async def answer_to(engine: Engine, event: Event) -> Answer:
    """What the core says to an event once it is durable; raises the error for a refusal."""
    answer = await engine.apply(event)
    if isinstance(answer, Refused):
        raise error_of(answer)
    return answer


_ERRORS: Mapping[RefusalCause, Callable[[str], MusterError]] = {
    RefusalCause.UNKNOWN: UnknownNameError,
    RefusalCause.CONFLICT: ConflictError,
    RefusalCause.EXHAUSTED: ExhaustedError,
    RefusalCause.INVALID: InvalidJobError,
    RefusalCause.FORBIDDEN: PermissionDeniedError,
    RefusalCause.TAKEN: TakenError,
}
