"""The sum over the tiers that run in lanes."""

from pathlib import Path

from tests.lanes import LANES, Result, result, summary
from tests.tiers import TIERS

REPORT = '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="1"/></testsuites>'


def test_every_tier_runs_in_one_lane() -> None:
    assert sorted(tier for lane in LANES for tier in lane) == sorted(TIERS)


def test_a_tier_is_counted_as_its_report_says(tmp_path: Path) -> None:
    report = tmp_path / "unit.xml"
    report.write_text(REPORT)
    found = result("unit", 1, 2.0, report)
    assert found == Result(tier="unit", code=1, seconds=2.0, passed=5, failed=3, skipped=1)


def test_a_tier_that_ends_without_a_report_has_failed(tmp_path: Path) -> None:
    assert result("unit", -9, 2.0, tmp_path / "unit.xml").failed == 1


def test_the_sum_is_said_as_pytest_says_it() -> None:
    one = Result(tier="unit", code=0, seconds=1.0, passed=5, failed=0, skipped=1)
    other = Result(tier="e2e", code=1, seconds=1.0, passed=2, failed=3, skipped=0)
    assert summary([one, other]) == "7 passed, 3 failed"
