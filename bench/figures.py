"""What was measured, and how it compares with the bars that Muster sets itself."""

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PACE = 70.0
"""The pace for which bars of CPU time are said: that of the machine on which they were first met, see `Series.pace`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The values of one measurement, all of one run."""

    name: str
    unit: str
    values: tuple[float, ...]
    section: str = ""
    """Which part of the benchmarks it belongs to."""
    busy: float = 0.0
    """Share of all CPUs that others used while it was taken; 0 … 1."""
    pace: float | None = None
    """Milliseconds that a CPU took for counting to ten million before or beside it; None: nobody counted."""

    @property
    def median(self) -> float:
        """What comparisons stand on."""
        return statistics.median(self.values)

    @property
    def paced(self) -> float:
        """The median as a multiple of the pace: for comparing measurements that were taken minutes apart."""
        if self.pace is None:
            raise ValueError(f"{self.name}: nobody counted before it was taken")
        return self.median / self.pace

    def shown(self) -> str:
        """Median, range and number."""
        low, high = min(self.values), max(self.values)
        return f"{number(self.median)} {self.unit}  ({number(low)} … {number(high)}, n={len(self.values)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a figure must reach."""

    figure: str
    limit: float | None = None
    """None for a figure that is only shown."""
    unit: str = ""
    at_least: bool = False
    """Whether more is better."""

    def met_by(self, value: float) -> bool | None:
        """Whether a value is good enough; None where nothing is asked for."""
        if self.limit is None:
            return None
        return value >= self.limit if self.at_least else value <= self.limit

    def shown(self) -> str:
        """Like `≤ 0.4`."""
        if self.limit is None:
            return ""
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
    """How busy others were, as for a series; the busiest of those that it follows from."""
    spread: tuple[float, float] | None = None
    """Least and greatest of the single values; of a comparison, of the pairs that were taken one after the other."""

    @property
    def met(self) -> bool | None:
        """Whether the bar was reached."""
        return self.bar.met_by(self.value)

    def shown(self) -> str:
        """Value, unit and spread."""
        value = number(self.value) if math.isinf(self.value) else f"{number(self.value)} {self.bar.unit}".rstrip()
        return value if self.spread is None else f"{value} ({number(self.spread[0])} … {number(self.spread[1])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One section of the benchmarks, once it has been run."""

    at: str
    """When it began."""
    took: float
    """Seconds."""
    version: str
    """What of Muster was measured."""
    quick: bool
    files: str
    """The file system on which all programs had their files."""
    pace: tuple[float, ...]
    """Milliseconds that a CPU took for counting to ten million, before each measurement."""
    remarks: tuple[str, ...]
    """What a reader must know: peers that are missing, a machine that was not quiet, why it could not be measured."""


@dataclass(slots=True)
class Findings:
    """All that one run found out."""

    machine: Mapping[str, str]
    series: dict[str, Series] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    parts: dict[str, Part] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    """Remarks of the section that is at work."""
    others: Callable[[], float] = lambda: 0.0
    """Share of all CPUs that others have used since the machine was last looked at."""
    pace: list[float] = field(default_factory=list)
    """The pace as in `Part`, of the section that is at work."""
    section: str = ""
    """Which part of the benchmarks is at work."""

    def take(self, name: str, values: Sequence[float], unit: str, pace: float | None = None) -> Series:
        """Keep a measurement, and say it; `pace`: of the moments in which it was taken, if somebody counted then."""
        if pace is not None:
            self.pace.append(pace)
        series = Series(
            name=name,
            unit=unit,
            values=tuple(values),
            section=self.section,
            busy=self.others(),
            pace=self.pace[-1] if self.pace else None,
        )
        self.series[name] = series
        print(f"  {name:<64} {series.shown()}", flush=True)
        return series

    def judge(self, bar: Bar, value: float, of: str) -> None:
        """Compare with a bar, and say it."""
        self._judge(Verdict(bar=bar, value=value, of=of, section=self.section, busy=self.others()))

    def ratio(self, bar: Bar, ours: str, theirs: str) -> None:
        """Compare the ratio of two medians with a bar; without one of them there is nothing to say."""
        if ours in self.series and theirs in self.series:
            value = self.series[ours].median / self.series[theirs].median
            ratios = [mine / other for mine, other in self._pairs(ours, theirs)]
            self._judge(self._verdict(bar, value, f"{ours} / {theirs}", (ours, theirs), ratios))

    def excess(
        self, bar: Bar, ours: str, theirs: str, typical: Callable[[Sequence[float]], float] = statistics.median
    ) -> None:
        """Compare by how much one is above the other with a bar: in what is typical of the pairs, if there are any."""
        if ours in self.series and theirs in self.series:
            excesses = [mine - other for mine, other in self._pairs(ours, theirs)]
            value = self.series[ours].median - self.series[theirs].median
            value = typical(excesses) if excesses else value
            self._judge(self._verdict(bar, value, f"{ours} - {theirs}", (ours, theirs), excesses))

    def absolute(self, bar: Bar, ours: str) -> None:
        """Compare a median with a bar."""
        if ours in self.series:
            series = self.series[ours]
            self._judge(self._verdict(bar, series.median, ours, (ours,), series.values))

    def at_pace(self, bar: Bar, ours: str, typical: Callable[[Sequence[float]], float] = statistics.median) -> None:
        """Compare what is typical of CPU times with a bar, as on a machine of the pace for which bars are said."""
        if ours in self.series:
            series = self.series[ours]
            scale = PACE / series.pace if series.pace else 1.0
            of = f"{ours}, if counting to ten million took {number(PACE)} ms"
            values = [value * scale for value in series.values]
            self._judge(self._verdict(bar, typical(values), of, (ours,), values))

    def remark(self, text: str) -> None:
        """Keep what a reader must know, and say it."""
        self.remarks.append(text)
        print(f"  ! {text}", flush=True)

    def done(self, part: Part) -> None:
        """The section that was at work is over."""
        self.parts[self.section] = part
        self.remarks, self.pace = [], []

    def write(self, file: Path) -> None:
        """Everything as JSON; what earlier runs found in other sections stays, with when, where and of what it was."""
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        parts = {name: part for name, part in known.get("parts", {}).items() if name not in self.parts}
        series = {name: each for name, each in known.get("series", {}).items() if each.get("section") in parts}
        verdicts = {name: each for name, each in known.get("verdicts", {}).items() if each.get("section") in parts}
        series |= {name: {**asdict(each), "median": each.median} for name, each in self.series.items()}
        verdicts |= {
            each.bar.figure: {**asdict(each), "met": each.met, "shown": each.shown()} for each in self.verdicts
        }
        parts = {name: {"machine": known.get("machine"), **part} for name, part in parts.items()}
        parts |= {name: {**asdict(part), "machine": dict(self.machine)} for name, part in self.parts.items()}
        found = {"parts": parts, "verdicts": verdicts, "series": series}
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(_finite(found), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def table(self) -> str:
        """The bars, and what else was compared, as text."""
        words = {True: "met", False: "MISSED", None: ""}
        rows = [
            f"{words[each.met]:<7} {each.bar.figure:<80} {each.shown():>28}  {each.bar.shown()}"
            for each in self.verdicts
        ]
        parts = [
            f"{name}: {part.took:.0f} s" + "".join(f"\n  ! {text}" for text in part.remarks)
            for name, part in self.parts.items()
        ]
        return "\n".join([*rows, *parts, f"in all: {sum(part.took for part in self.parts.values()):.0f} s"])

    def _pairs(self, ours: str, theirs: str) -> list[tuple[float, float]]:
        """Values of the same turn, where both were taken in every turn."""
        mine, others = self.series[ours].values, self.series[theirs].values
        return list(zip(mine, others, strict=True)) if len(mine) == len(others) else []

    def _verdict(self, bar: Bar, value: float, of: str, names: Sequence[str], single: Sequence[float]) -> Verdict:
        busy = max(self.series[name].busy for name in names)
        spread = (min(single), max(single)) if len(single) > 1 else None
        return Verdict(bar=bar, value=value, of=of, section=self.section, busy=busy, spread=spread)

    def _judge(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        words = {True: "met   ", False: "MISSED", None: "      "}
        bar = "" if verdict.bar.limit is None else f"  bar {verdict.bar.shown()}"
        print(f"  {words[verdict.met]} {verdict.bar.figure}: {verdict.shown()}{bar}", flush=True)


def number(value: float) -> str:
    """Three digits that say something."""
    if math.isinf(value):
        return "not reached"
    if value == 0 or abs(value) >= 100:  # noqa: PLR2004 - three digits
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _finite(found: Any) -> Any:  # noqa: ANN401 - whatever JSON may hold
    """The value with null where it is infinite, for which JSON has no word."""
    match found:
        case float() if math.isinf(found):
            return None
        case dict():
            return {key: _finite(value) for key, value in found.items()}
        case list() | tuple():
            return [_finite(value) for value in found]
        case _:
            return found
