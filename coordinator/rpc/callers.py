"""Who makes the call that is being answered; set at admission, read by the services."""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeAlias

import grpc.aio

from coordinator.trust.caller import STRANGER, Caller
from muster.domain.access import AuditEntry
from muster.domain.job import DEFAULT_PROJECT
from muster.rpc.v1 import jobs_pb2

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

Who: TypeAlias = Callable[[Mapping[str, str], Context, datetime], Caller]
"""How a door knows who comes in, by metadata and certificate; raises RefusedError for what does not count."""

CALLER: ContextVar[Caller] = ContextVar("caller", default=STRANGER)

_TARGETS = ("job", "node", "account", "name", "id", "project")
_SPECIAL: Mapping[str, str] = {"SubmitRequest": "spec", "SubmitResponse": "job"}
"""Messages that hold their target one level deeper."""
_IN_PROJECTS = frozenset({"PutSecretRequest", "RemoveSecretRequest"})
"""Messages whose name says enough only beside the project."""


def caller() -> Caller:
    """Who calls; a stranger where nobody was let in."""
    return CALLER.get()


def entry(context: Context, method: str, target: str, result: str, at: datetime) -> AuditEntry:
    """What the audit log is to say of the call that is being answered."""
    return AuditEntry(
        at=at, who=caller().name, what=short(method), target=target, origin=str(context.peer()), result=result
    )


def short(method: str) -> str:
    """`/muster.rpc.v1.JobService/Submit` as `JobService.Submit`."""
    service, _, call = method.rpartition("/")
    return f"{service.rpartition('.')[2]}.{call}"


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
    if type(message).__name__ in _IN_PROJECTS:
        return f"{getattr(message, 'project', '') or DEFAULT_PROJECT}/{getattr(message, 'name', '')}"
    inner = getattr(message, _SPECIAL.get(type(message).__name__, ""), message)
    values = (getattr(inner, name, "") for name in ("id", *_TARGETS) if inner is not message or name in _TARGETS)
    return next((value for value in values if isinstance(value, str) and value), "")
