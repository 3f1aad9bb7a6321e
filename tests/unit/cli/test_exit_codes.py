"""Exit codes, and the page that lists them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from muster.cli.exit_codes import ExitCode, code_of_error, code_of_job
from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    MusterError,
    UnavailableError,
    UnknownNameError,
)
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase
from muster.jobfile import FieldError
from tests.unit.cli import values

ROOT = Path(__file__).parents[3]


def test_the_page_lists_every_exit_code() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    module = (ROOT / "muster" / "cli" / "exit_codes.py").read_text()

    listed = re.findall(r"^\| (\d+) \| (\w+) \| (.*) \|$", page, re.MULTILINE)

    assert [(int(code), name) for code, name, _ in listed] == [(code.value, code.name) for code in ExitCode]
    assert [meaning for _, _, meaning in listed] == re.findall(r"= \d+  #: (.*)", module)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidJobError(), ExitCode.USAGE),
        (FieldError("is wrong"), ExitCode.USAGE),
        (UnavailableError(), ExitCode.UNAVAILABLE),
        (UnknownNameError(), ExitCode.UNKNOWN_NAME),
        (ConflictError(), ExitCode.REFUSED),
        (ExhaustedError(), ExitCode.REFUSED),
        (MusterError(), ExitCode.JOB_FAILED),
    ],
)
def test_an_error_has_the_code_of_its_kind(error: MusterError, code: ExitCode) -> None:
    assert code_of_error(error) is code


@pytest.mark.parametrize("code", [1, 7, 44, 137, 255])
def test_a_failed_job_has_the_code_of_the_program_that_failed_first(code: int) -> None:
    failure = replace(values.EXIT_3, exit=Exit(code=code))

    assert code_of_job(values.job(JobPhase.FAILED, failure=failure)) == code


@pytest.mark.parametrize("exit_", [None, Exit(code=0), Exit(code=256)])
def test_a_job_that_failed_without_such_a_code_has_one_of_its_own(exit_: Exit | None) -> None:
    failure = replace(values.EXIT_3, exit=exit_)

    assert code_of_job(values.job(JobPhase.FAILED, failure=failure)) == ExitCode.JOB_FAILED
    assert code_of_job(values.job(JobPhase.FAILED)) == ExitCode.JOB_FAILED


def test_every_end_of_a_job_has_a_code_of_its_own() -> None:
    assert len({code_of_job(values.job(phase)) for phase in JobPhase if phase.ended}) == 3
