"""Every error has its status, and says what the command line says."""

import pytest

from console.api.problems import kind_of, problem_of
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
from muster.domain.fault import Fault
from muster.jobfile import JobFileError, Problem


@pytest.mark.parametrize(
    ("error", "status", "word"),
    [
        (InvalidJobError("x"), 400, "invalid"),
        (JobFileError("body", []), 422, "job-file"),
        (JobsRefusedError(["a"], {0: ConflictError("x")}, ()), 422, "jobs-refused"),
        (NotSignedInError("x"), 401, "not-signed-in"),
        (PermissionDeniedError("x"), 403, "not-allowed"),
        (UnknownNameError("x"), 404, "not-found"),
        (ConflictError("x"), 409, "conflict"),
        (ExhaustedError("x"), 429, "too-much"),
        (MusterError("x"), 502, "failed"),
        (UnavailableError("x"), 503, "unavailable"),
    ],
)
def test_an_error_has_its_status(error: MusterError, status: int, word: str) -> None:
    problem = problem_of(error)
    assert (int(kind_of(error).status), problem["status"]) == (status, status)
    assert problem["type"] == f"urn:muster:problem:{word}"
    assert problem["detail"] == str(error)


def test_faults_have_their_places() -> None:
    fault = Fault(path=("roles", 0, "count"), message="must be at least 1")
    assert problem_of(InvalidJobError.of("x", [fault]))["issues"] == [
        {"field": "roles[0].count", "message": "must be at least 1", "suggestion": None}
    ]
    wrong = Problem(line=3, column=7, field="workers", message="must be a whole number")
    error = JobFileError("body", [wrong])
    assert problem_of(error)["issues"] == [
        {"line": 3, "column": 7, "field": "workers", "message": "must be a whole number", "suggestion": None}
    ]
    refused = problem_of(JobsRefusedError(["a", "b"], {1: error}, ()))
    assert refused["issues"] == [
        {"job": 1, "name": "b", "message": str(error), "issues": problem_of(error)["issues"]},
    ]
