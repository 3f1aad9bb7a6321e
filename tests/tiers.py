"""Pytest plugin: runs the tiers from the quickest to the slowest and says at the end what was skipped, and why.

Used as `python -m pytest -p tests.tiers`; `python -m tests.lanes` does, for each tier. With MUSTER_REQUIRE_E2E=1, which
CI sets, a test that cannot run for lack of root, Docker or the like fails instead of being skipped.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

TIERS = (
    *("unit", "fuzz", "house", "contract", "simulation", "integration", "frameworks", "browsers", "soak", "e2e"),
    "machines",
)
"""The directories below tests/, in the order in which they run."""

_tiers: dict[str, str] = {}
"""The tier of each collected test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(_tier(item)))  # stable: the order within a tier stays
    _tiers.update({item.nodeid: _tier(item) for item in items})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("MUSTER_REQUIRE_E2E") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, but MUSTER_REQUIRE_E2E=1: {_reason(report)}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[tuple[str, str], int] = Counter()
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(outcome):
            tier = _tiers.get(report.nodeid, "other")
            outcomes[tier][outcome] += 1
            if outcome == "skipped":
                reasons[tier, _reason(report)] += 1
    terminalreporter.section("tiers")
    for tier in sorted(outcomes, key=_rank):
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes[tier].items())
        terminalreporter.write_line(f"{tier:<12} {counts}")
    for (tier, reason), count in sorted(reasons.items(), key=lambda entry: _rank(entry[0][0])):
        terminalreporter.write_line(f"NOT TESTED   {tier}: {count} skipped because {reason}", yellow=True)


def _tier(item: pytest.Item) -> str:
    below = item.path.relative_to(Path(__file__).parent)
    return below.parts[0]


def _rank(tier: str) -> int:
    return TIERS.index(tier) if tier in TIERS else len(TIERS)


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
