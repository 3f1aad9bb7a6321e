"""Exit codes, and the page that lists them."""

import re
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
from muster.domain.jobs.lifecycle import JobPhase
from muster.jobfile import FieldError

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


def test_every_end_of_a_job_has_a_code_of_its_own() -> None:
    assert len({code_of_job(phase) for phase in JobPhase if phase.ended}) == 3
