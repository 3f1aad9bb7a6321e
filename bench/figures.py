"""What was measured, and how it compares with the bars that Muster sets itself."""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The values of one measurement, all of one run."""

    name: str
    unit: str
    values: tuple[float, ...]
    busy: float
    """Share of all CPUs that was in use just before, by whatever else runs here; 0 … 1."""

    @property
    def median(self) -> float:
        """What comparisons stand on."""
        return statistics.median(self.values)

    def shown(self) -> str:
        """Median, range and number."""
        low, high = min(self.values), max(self.values)
        return f"{number(self.median)} {self.unit}  ({number(low)} … {number(high)}, n={len(self.values)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a figure must reach."""

    figure: str
    limit: float
    unit: str = ""
    at_least: bool = False
    """Whether more is better."""

    def met_by(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.limit if self.at_least else value <= self.limit

    def shown(self) -> str:
        """Like `≤ 0.4`."""
        return f"{'≥' if self.at_least else '≤'} {number(self.limit)} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A bar and what was measured."""

    bar: Bar
    value: float
    of: str
    """From which series it follows."""
    section: str
    """Which part of the benchmarks it belongs to."""
    busy: float = 0.0
    """As for a series, when it was judged."""

    @property
    def met(self) -> bool:
        """Whether the bar was reached."""
        return self.bar.met_by(self.value)


@dataclass(slots=True)
class Findings:
    """All that one run found out."""

    machine: Mapping[str, str]
    series: dict[str, Series] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What a reader must know: peers that are missing, a machine that was not quiet."""
    busy: float = 0.0
    """Of the machine when it was last looked at."""
    section: str = ""
    """Which part of the benchmarks is at work."""

    def take(self, name: str, values: Sequence[float], unit: str) -> Series:
        """Keep a measurement, and say it."""
        series = self.series[name] = Series(name=name, unit=unit, values=tuple(values), busy=self.busy)
        print(f"  {name:<64} {series.shown()}", flush=True)
        return series

    def judge(self, bar: Bar, value: float, of: str) -> None:
        """Compare with a bar, and say it."""
        verdict = Verdict(bar=bar, value=value, of=of, section=self.section, busy=self.busy)
        self.verdicts.append(verdict)
        print(
            f"  {'met   ' if verdict.met else 'MISSED'} {bar.figure}: {number(value)} (bar {bar.shown()})", flush=True
        )

    def ratio(self, bar: Bar, ours: str, theirs: str) -> None:
        """Compare the ratio of two medians with a bar; without one of them there is nothing to say."""
        if ours in self.series and theirs in self.series:
            value = self.series[ours].median / self.series[theirs].median
            self.judge(bar, value, f"{ours} / {theirs}")

    def excess(self, bar: Bar, ours: str, theirs: str) -> None:
        """Compare by how much one median is above another with a bar."""
        if ours in self.series and theirs in self.series:
            value = self.series[ours].median - self.series[theirs].median
            self.judge(bar, value, f"{ours} - {theirs}")

    def absolute(self, bar: Bar, ours: str) -> None:
        """Compare a median with a bar."""
        if ours in self.series:
            self.judge(bar, self.series[ours].median, ours)

    def remark(self, text: str) -> None:
        """Keep what a reader must know, and say it."""
        self.remarks.append(text)
        print(f"  ! {text}", flush=True)

    def write(self, file: Path) -> None:
        """Everything as JSON; what earlier runs found of other measurements stays."""
        known = json.loads(file.read_text()) if file.exists() else {"series": {}, "verdicts": {}}
        known["machine"] = dict(self.machine)
        known["series"].update({name: {**asdict(each), "median": each.median} for name, each in self.series.items()})
        known["verdicts"].update({each.bar.figure: {**asdict(each), "met": each.met} for each in self.verdicts})
        known["remarks"] = self.remarks
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")

    def table(self) -> str:
        """The bars as text."""
        rows = [
            f"{'met' if each.met else 'MISSED':<7} {each.bar.figure:<70} {number(each.value):>9}  {each.bar.shown()}"
            for each in self.verdicts
        ]
        return "\n".join([*rows, *(f"! {remark}" for remark in self.remarks)])


def number(value: float) -> str:
    """Three digits that say something."""
    if math.isinf(value):
        return "not reached"
    if value == 0 or abs(value) >= 100:  # noqa: PLR2004
        return f"{value:,.0f}"
    return f"{value:.3g}"
