"""Who makes the call that is being answered; set at admission, read by the services."""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeAlias

import grpc.aio

from coordinator.rpc.calls import operation_of
from coordinator.trust.caller import STRANGER, Caller
from muster.domain.fleet.access import AuditEntry
from muster.rpc.v1 import jobs_pb2

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

Who: TypeAlias = Callable[[Mapping[str, str], Context, datetime], Caller]
"""How a door knows who comes in, by metadata and certificate; raises RefusedError for what does not count."""

CALLER: ContextVar[Caller] = ContextVar("caller", default=STRANGER)

_TARGETS = ("job", "node", "account", "name", "id", "project")
_SPECIAL: Mapping[str, str] = {"SubmitRequest": "spec", "SubmitResponse": "job"}
"""Messages that hold their target one level deeper."""


def caller() -> Caller:
    """Who calls; a stranger where nobody was let in."""
    return CALLER.get()


def entry(context: Context, method: str, target: str, result: str, at: datetime) -> AuditEntry:
    """What the audit log is to say of the call that is being answered."""
    return AuditEntry(
        at=at, who=caller().name, what=operation_of(method), target=target, origin=str(context.peer()), result=result
    )


def outcomes(request: object, response: object) -> Iterator[tuple[str, str, str]]:
    """What a call that was answered has come to, for each thing that it was about: target, status, reason."""
    if not isinstance(response, jobs_pb2.SubmitManyResponse):
        yield target_of(response) or target_of(request), "OK", ""
        return
    assert isinstance(request, jobs_pb2.SubmitManyRequest)
    for refusal in response.refusals:
        yield target_of(request.jobs[refusal.position]), refusal.status, refusal.message
    for submitted, job in zip(request.jobs, response.ids, strict=False):
        yield job or target_of(submitted), "OK", ""


def target_of(message: object) -> str:
    """What a request, or an answer, is about; empty for nothing in particular."""
    if isinstance(message, jobs_pb2.SubmitManyRequest):
        return f"{len(message.jobs)} jobs"
    inner = getattr(message, _SPECIAL.get(type(message).__name__, ""), message)
    values = (getattr(inner, name, "") for name in ("id", *_TARGETS) if inner is not message or name in _TARGETS)
    return next((value for value in values if isinstance(value, str) and value), "")
