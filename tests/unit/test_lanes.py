"""The sum over the tiers that run in lanes."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lanes import FEW, LANES, Result, Work, result, summary
from tests.tiers import TIERS

UNIT, E2E = (Work(tier, tier, (f"tests/{tier}",)) for tier in ("unit", "e2e"))
REPORT = '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="1"/></testsuites>'


def test_every_tier_runs() -> None:
    assert {tier for lane in LANES for tier in lane} == set(TIERS)


def test_a_tier_is_counted_as_its_report_says(tmp_path: Path) -> None:
    report = tmp_path / "unit.xml"
    report.write_text(REPORT)
    found = result(UNIT, 1, 2.0, report)
    assert found == Result(work=UNIT, code=1, seconds=2.0, passed=5, failed=3, skipped=1)


def test_a_tier_that_ends_without_a_report_has_failed(tmp_path: Path) -> None:
    assert result(UNIT, -9, 2.0, tmp_path / "unit.xml").failed == 1


FAILED = Result(work=E2E, code=1, seconds=1.0, passed=2, failed=1, skipped=0, failures=("tests.e2e.test_it::test_a",))
PASSED = Result(work=E2E, code=0, seconds=0.5, passed=1, failed=0, skipped=0)


def test_what_passes_alone_has_passed_and_is_named() -> None:
    ended = FAILED.and_then(PASSED)
    assert (ended.code, ended.passed, ended.failed, ended.seconds) == (0, 3, 0, 1.5)
    assert ended.alone == FAILED.failures


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(replace(PASSED, code=1, passed=0, failed=1), id="it fails again"),
        pytest.param(replace(PASSED, code=5, passed=0), id="no test runs"),
        pytest.param(replace(PASSED, passed=0, skipped=1), id="it is skipped"),
    ],
)
def test_what_does_not_pass_alone_has_failed(again: Result) -> None:
    ended = FAILED.and_then(again)
    assert (ended.code, ended.passed, ended.failed, ended.alone) == (1, 2, 1, ())


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(replace(FAILED, work=UNIT), id="of a tier that starts no programs"),
        pytest.param(replace(FAILED, failed=FEW + 1), id="many"),
        pytest.param(replace(FAILED, code=-9), id="the run itself died"),
        pytest.param(PASSED, id="none"),
    ],
)
def test_these_failures_do_not_run_again(first: Result) -> None:
    assert FAILED.may_run_again
    assert not first.may_run_again


def test_the_sum_is_said_as_pytest_says_it() -> None:
    one = Result(work=UNIT, code=0, seconds=1.0, passed=5, failed=0, skipped=1)
    other = Result(work=E2E, code=1, seconds=1.0, passed=2, failed=3, skipped=0)
    assert summary([one, other]) == "7 passed, 3 failed"
