"""What the exit code of `muster` says; the table in docs/cli.md is this one."""

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    MusterError,
    PermissionDeniedError,
    UnavailableError,
    UnknownNameError,
)
from muster.domain.jobs.lifecycle import JobPhase

if TYPE_CHECKING:
    from muster.domain.jobs.view import JobView  # every command loads this module, and few have a job

_LARGEST = 255
"""The largest exit code that a shell sees."""


class ExitCode(IntEnum):
    """How a command ended."""

    SUCCESS = 0  #: it did what was asked; a job that was waited for succeeded
    JOB_FAILED = 1  #: the job failed without an exit code of its program, or something else went wrong
    USAGE = 2  #: wrong options, or a job file that is not valid
    UNAVAILABLE = 3  #: no coordinator answers, or a time-out ran out
    UNKNOWN_NAME = 4  #: there is no such job or node
    REFUSED = 5  #: it does not fit the present state, is not allowed, or a limit is reached
    JOB_STOPPED = 6  #: the job that was waited for was stopped before it ended
    INTERRUPTED = 130  #: Ctrl-C
    PIPE_CLOSED = 141  #: whoever read the output has stopped reading, like `head`


_OF_ERROR: Mapping[type[MusterError], ExitCode] = {
    InvalidJobError: ExitCode.USAGE,
    UnavailableError: ExitCode.UNAVAILABLE,
    UnknownNameError: ExitCode.UNKNOWN_NAME,
    ConflictError: ExitCode.REFUSED,
    ExhaustedError: ExitCode.REFUSED,
    PermissionDeniedError: ExitCode.REFUSED,
}

_OF_PHASE: Mapping[JobPhase, ExitCode] = {
    JobPhase.SUCCEEDED: ExitCode.SUCCESS,
    JobPhase.FAILED: ExitCode.JOB_FAILED,
    JobPhase.STOPPED: ExitCode.JOB_STOPPED,
}


def code_of_error(error: MusterError) -> ExitCode:
    """The exit code of a command that ended with `error`."""
    for kind, code in _OF_ERROR.items():
        if isinstance(error, kind):
            return code
    return ExitCode.JOB_FAILED


def code_of_job(job: "JobView") -> int:
    """The exit code of a command that waited for a job: of the program that failed first, else by the phase."""
    if job.phase is JobPhase.FAILED and job.failure is not None and job.failure.exit is not None:
        return job.failure.exit.code & _LARGEST or ExitCode.JOB_FAILED
    return _OF_PHASE[job.phase]
