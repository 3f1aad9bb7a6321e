"""`python -m tests.lanes`: all tiers, in lanes beside each other, each tier a run of pytest with its own output.

A tier that stands in several lanes is dealt among them in portions: the lane that is free first takes the next. The
output of a tier is printed whole when the tier has ended, and tiers that fail keep no other from running. Tests that
wait for real programs can fail because the lanes beside them took the processors. Where a few of them fail, they run
again when all lanes have ended. Those that pass then are named at the end, for somebody to mend. The last line says
`N passed, N failed`; a tier that ends without a result counts as one failure. MUSTER_TEST_RESULTS names a directory in
which outputs, and that line, stay. Ctrl-C is passed on to the tests, which clear up; a second one is, too.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree as ET

LANES = (
    ("machines", "soak", "integration"),
    ("e2e", "frameworks", "browsers", "integration"),
    ("house", "unit", "fuzz", "contract", "simulation", "integration"),
)
"""The tiers of each lane, in the order in which they run. Before the last tier each lane takes about as long as the
others: one computes, and two mostly wait for what boots, answers and ends. No more lanes than these, as tests of real
programs have limits in time. The last tier is dealt, so that no lane ends much before the others.
"""

PORTIONS = 9
"""Parts of a tier that is dealt. More would end closer together; each is a run of pytest, which takes time to begin."""

OF_REAL_PROGRAMS = frozenset({"browsers", "contract", "e2e", "frameworks", "integration", "machines", "soak"})
"""Tiers whose tests wait for real programs. Only these run again: elsewhere a test that fails at times is a fault."""

FEW = 3
"""Failures of a tier that run again at most. More than that are no accident."""

SLOWEST = 10
"""Tests that each tier names because they took longest."""

TESTS_FAILED = 1
"""The exit code of pytest when all tests ran and some failed."""

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Work:
    """What one run of pytest takes: a tier, or some files of it."""

    tier: str
    name: str
    """What its output is called."""
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a tier ended, or some files of it."""

    work: Work
    code: int
    """The exit code of pytest."""
    seconds: float
    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...] = ()
    """The tests that failed."""
    alone: tuple[str, ...] = ()
    """The tests that failed beside other lanes and passed when they ran again without them."""

    @property
    def may_run_again(self) -> bool:
        return self.work.tier in OF_REAL_PROGRAMS and self.code == TESTS_FAILED and self.failed <= FEW

    def and_then(self, again: "Result") -> "Result":
        """How the tier ended, all in all, when its failures have run again."""
        seconds = self.seconds + again.seconds
        if again.code or again.passed != self.failed:
            return replace(self, seconds=seconds)
        passed = self.passed + again.passed
        return replace(self, code=0, seconds=seconds, passed=passed, failed=0, failures=(), alone=self.failures)

    def __str__(self) -> str:
        counts = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        return f"{self.work.name:<13} {counts} in {self.seconds:.0f} s (exit code {self.code})"


def summary(results: Iterable[Result]) -> str:
    """The sum over all tiers, as pytest would say it of one run."""
    results = list(results)
    return f"{sum(each.passed for each in results)} passed, {sum(each.failed for each in results)} failed"


def works(lanes: Iterable[Iterable[str]]) -> dict[str, list[Work]]:
    """What there is to do for each tier, in order: a tier of several lanes in portions, with files from all over it."""
    count = Counter(tier for tiers in lanes for tier in tiers)
    found = {tier: [Work(tier, tier, (f"tests/{tier}",))] for tier in count}
    for tier in (tier for tier in count if count[tier] > 1):
        files = sorted(str(path) for path in Path("tests", tier).rglob("test_*.py"))
        portions = [tuple(files[first::PORTIONS]) for first in range(min(PORTIONS, len(files)))]
        found[tier] = [Work(tier, f"{tier}-{number}", paths) for number, paths in enumerate(portions, 1)]
    return found


def result(work: Work, code: int, seconds: float, report: Path) -> Result:
    """What the report of a run says; one that ended badly has at least one failure."""
    total = bad = skipped = 0
    failures: list[str] = []
    if report.exists():
        for suite in ET.parse(report).getroot().iter("testsuite"):
            total += int(suite.get("tests", 0))
            bad += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            skipped += int(suite.get("skipped", 0))
            failures += [
                f"{each.get('classname')}::{each.get('name')}"
                for each in suite.iter("testcase")
                if each.find("failure") is not None or each.find("error") is not None
            ]
    return Result(
        work=work,
        code=code,
        seconds=seconds,
        passed=total - bad - skipped,
        failed=bad or int(code != 0),
        skipped=skipped,
        failures=tuple(failures),
    )


@dataclass(slots=True)
class Run:
    """All lanes of one run."""

    directory: Path
    """Directory of the outputs."""
    pytest: Sequence[str] = (sys.executable, "-m", "pytest", "-p", "tests.tiers")
    """The command that runs the tests of a tier."""
    results: list[Result] = field(default_factory=list)
    interrupted: bool = False
    _running: set[asyncio.subprocess.Process] = field(default_factory=set)

    async def all(self, lanes: Sequence[Sequence[str]]) -> int:
        """Run all lanes to their ends; the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupt)
        to_do = works(lanes)
        async with asyncio.TaskGroup() as tasks:
            for tiers in lanes:
                tasks.create_task(self._lane(tiers, to_do), name=" ".join(tiers))
        await self._failures_again()
        if self.interrupted:
            return INTERRUPTED
        return int(any(each.code for each in self.results))

    async def _lane(self, tiers: Sequence[str], to_do: Mapping[str, list[Work]]) -> None:
        for tier in tiers:
            while to_do[tier] and not self.interrupted:
                work = to_do[tier].pop(0)
                self.results.append(await self._pytest(work, work.name))

    async def _failures_again(self) -> None:
        """Run the few failures of real programs again, one tier after another."""
        for index, first in enumerate(self.results):
            if first.may_run_again and not self.interrupted:
                again = await self._pytest(first.work, f"{first.work.name}-again", "--last-failed")
                self.results[index] = first.and_then(again)

    async def _pytest(self, work: Work, name: str, *options: str) -> Result:
        """Run pytest and print what it said; `name` is that of its output."""
        output, report = self.directory / f"{name}.txt", self.directory / f"{name}.xml"
        _say(f"== {name} begins; its output so far is in {output}")
        began = time.monotonic()
        with output.open("wb") as file:
            # A process group of its own: Ctrl-C at the terminal reaches the tests once, by way of this program.
            process = await asyncio.create_subprocess_exec(
                *(*self.pytest, *options, f"--durations={SLOWEST}", f"--junit-xml={report}"),
                *("-o", f"cache_dir={self.directory / f'{work.name}.cache'}", *work.paths),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        self._running.add(process)
        if self.interrupted:
            self._interrupt()  # it came while the program was being started
        code = await process.wait()
        self._running.discard(process)
        ended = result(work, code, time.monotonic() - began, report)
        _say(f"{output.read_text(errors='replace')}\n== {name}: {ended}")
        return ended

    def _interrupt(self) -> None:
        self.interrupted = True
        for process in self._running:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def _results() -> Iterator[Path]:
    """The directory for outputs; one that nobody has named is removed at the end."""
    named = os.environ.get("MUSTER_TEST_RESULTS")
    if named:
        yield Path(named)
        return
    with tempfile.TemporaryDirectory(prefix="muster-tests-") as made:
        yield Path(made)


def main() -> int:
    with _results() as directory:
        run = Run(directory)
        code = asyncio.run(run.all(LANES))
        for each in run.results:
            _say(str(each))
        for test in (test for each in run.results for test in each.alone):
            _say(f"TO MEND      {test} failed beside other lanes and passed alone")
        (directory / "summary").write_text(f"{summary(run.results)}\n")
        _say(summary(run.results))
    return code


if __name__ == "__main__":
    sys.exit(main())
