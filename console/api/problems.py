"""What goes wrong, as RFC 9457 has it: `application/problem+json`, with the sentence that the command line says.

`issues` has each fault of a job file with its line and column, or each wrong part of a request.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from muster.documents import Document, document
from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    JobsRefusedError,
    MusterError,
    NotSignedInError,
    PermissionDeniedError,
    UnavailableError,
    UnknownNameError,
)
from muster.domain.fault import spell
from muster.jobfile import JobFileError

PROBLEM = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemKind:
    """A way in which a request can fail."""

    word: str
    """The last part of its `type`, `urn:muster:problem:WORD`."""
    status: HTTPStatus
    title: str


_KINDS: Mapping[type[MusterError], ProblemKind] = {
    JobFileError: ProblemKind(word="job-file", status=HTTPStatus.UNPROCESSABLE_ENTITY, title="the job file has faults"),
    JobsRefusedError: ProblemKind(
        word="jobs-refused", status=HTTPStatus.UNPROCESSABLE_ENTITY, title="some of the jobs were refused"
    ),
    InvalidJobError: ProblemKind(word="invalid", status=HTTPStatus.BAD_REQUEST, title="the request is wrong"),
    UnknownNameError: ProblemKind(word="not-found", status=HTTPStatus.NOT_FOUND, title="nothing has that name"),
    ConflictError: ProblemKind(
        word="conflict", status=HTTPStatus.CONFLICT, title="that does not fit the present state"
    ),
    NotSignedInError: ProblemKind(word="not-signed-in", status=HTTPStatus.UNAUTHORIZED, title="nobody knows who asks"),
    PermissionDeniedError: ProblemKind(word="not-allowed", status=HTTPStatus.FORBIDDEN, title="that is not allowed"),
    ExhaustedError: ProblemKind(
        word="too-much", status=HTTPStatus.TOO_MANY_REQUESTS, title="a limit is reached; later it may go well"
    ),
    UnavailableError: ProblemKind(
        word="unavailable", status=HTTPStatus.SERVICE_UNAVAILABLE, title="the coordinator does not answer"
    ),
}
"""The first line that fits counts."""
_FAILED = ProblemKind(word="failed", status=HTTPStatus.BAD_GATEWAY, title="the coordinator has failed")
_OWN_FAULT = ProblemKind(word="fault", status=HTTPStatus.INTERNAL_SERVER_ERROR, title="the console has failed")


def kind_of(error: MusterError) -> ProblemKind:
    """The way in which a request failed that ended with this error."""
    return next((kind for each, kind in _KINDS.items() if isinstance(error, each)), _FAILED)


def problem_of(error: MusterError) -> dict[str, Document]:
    """An error as a problem document."""
    kind = kind_of(error)
    return {
        "type": f"urn:muster:problem:{kind.word}",
        "title": kind.title,
        "status": int(kind.status),
        "detail": str(error),
        "issues": list(_issues(error)),
    }


def _issues(error: MusterError) -> Iterator[Document]:
    match error:
        case JobFileError():
            for problem in error.problems:
                yield document(problem)
        case JobsRefusedError():
            for place, refused in error.refused.items():
                yield {
                    "job": place,
                    "name": error.names[place],
                    "message": str(refused),
                    "issues": list(_issues(refused)),
                }
        case InvalidJobError():
            for fault in error.faults:
                yield {"field": spell(fault.path), "message": fault.message, "suggestion": fault.suggestion}


async def answer_error(_: Request, error: Exception) -> JSONResponse:
    """The answer to a request that ended with one of Muster's errors."""
    assert isinstance(error, MusterError)
    headers = {}
    if isinstance(error, NotSignedInError):
        headers["WWW-Authenticate"] = 'Bearer realm="muster"'
    if isinstance(error, ExhaustedError) and error.retry_after is not None:
        headers["Retry-After"] = str(ceil(error.retry_after))
    problem = problem_of(error)
    return JSONResponse(problem, int(kind_of(error).status), headers, media_type=PROBLEM)


async def answer_wrong_parts(_: Request, error: Exception) -> JSONResponse:
    """The answer to a request of which parameters or parts of the body are wrong."""
    assert isinstance(error, RequestValidationError)
    return _plain(HTTPStatus.BAD_REQUEST, "invalid", "parts of the request are wrong", _parts(error.errors()))


async def answer_http(_: Request, error: Exception) -> JSONResponse:
    """The answer where no route fits a path, or none that fits has its verb."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    answer = _plain(status, status.phrase.lower().replace(" ", "-"), error.detail)
    answer.headers.update(error.headers or {})
    return answer


async def answer_fault(_: Request, __: Exception) -> JSONResponse:
    """The answer where the console itself has a fault; what it is stands in its journal."""
    return _plain(_OWN_FAULT.status, _OWN_FAULT.word, _OWN_FAULT.title)


def refusal(status: HTTPStatus, word: str, detail: str) -> JSONResponse:
    """The answer to a request that is refused before anybody looks at what it asks."""
    return _plain(status, word, detail)


def _plain(status: HTTPStatus, word: str, detail: str, issues: Iterable[Document] = ()) -> JSONResponse:
    content = {
        "type": f"urn:muster:problem:{word}",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
        "issues": list(issues),
    }
    return JSONResponse(content, int(status), media_type=PROBLEM)


def _parts(errors: Iterable[Mapping[str, object]]) -> Iterator[Document]:
    for error in errors:
        where = error["loc"]
        assert isinstance(where, tuple)
        place, *path = where
        yield {"in": str(place), "field": ".".join(map(str, path)), "message": str(error["msg"])}
