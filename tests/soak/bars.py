"""What was seen in a soak, and whether it is good enough: pure, so that its judgement can be tested."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

P99 = 0.5
"""Seconds within which 99 of 100 of the admin's calls are answered."""
SHORT, SHORT_P99 = 300.0, 2.0
"""A soak of fewer seconds makes so few calls that a busy machine decides about the slowest; its bar is wider."""
GROWTH, GROWTH_AN_HOUR = 24.0, 16.0
"""MiB by which memory may have grown after the warm-up: what a measurement is uncertain by, and more in an hour."""
JOURNAL_AN_HOUR, JOURNAL_LEAST = 1_000_000, 64_000
"""Bytes of the coordinator's journal in an hour; a short soak may have its fair share, but at least so many."""
JOURNAL_A_JOB = 4_000
"""Bytes more for each job that the admin submits: the journal tells its story, which no stranger can make longer."""
WARM_UP, WARM_UP_LEAST = 0.25, 60.0
"""Share of the time, and seconds at least, in which caches and pools fill; memory is not judged in it."""
ROUND = 30.0
"""Seconds in which every disturbance comes once. Memory goes up and down in them; of each the least counts."""
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the admin."""

    what: str
    seconds: float
    lost: str = ""
    """Why it was not answered; empty: it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The coordinator at one moment."""

    at: float
    """Seconds since the soak began."""
    resident: float
    """MiB in main memory."""
    journal: int
    """Bytes that it has logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that was seen."""

    seconds: float
    calls: Sequence[Call]
    samples: Sequence[Sample]
    nodes: int
    connected: int
    """Nodes that were connected in the end."""
    ended: str = ""
    """How the coordinator, or what disturbs it, ended before it was told to; empty: it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One bar."""

    bar: str
    found: float
    limit: float
    unit: str
    met: bool
    note: str = ""


def judged(seen: Seen) -> tuple[Row, ...]:
    """Every bar, with what was found."""
    lost = [call for call in seen.calls if call.lost]
    hours = seen.seconds / HOUR
    return (
        _at_most("admin's calls, p99", percentile(_times(seen.calls), 99), _p99(seen.seconds), "s"),
        _at_most("admin's calls lost", len(lost), 0, "", lost[0].what + ": " + lost[0].lost if lost else ""),
        _at_most("memory grown after the warm-up", growth(seen), GROWTH + GROWTH_AN_HOUR * hours, "MiB"),
        _at_most("journal", journal(seen.samples), _journal_limit(seen), "B"),
        _at_most("nodes not connected in the end", seen.nodes - seen.connected, 0, ""),
        _at_most("programs that ended by themselves", float(bool(seen.ended)), 0, "", seen.ended),
        Row(bar="calls made", found=len(seen.calls), limit=1, unit="at least", met=bool(seen.calls)),
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """The least value that so many percent do not exceed; 0 of none."""
    ranked = sorted(values)
    return ranked[max(0, ceil(len(ranked) * percent / 100) - 1)] if ranked else 0.0


def growth(seen: Seen) -> float:
    """MiB by which a straight line through the least memory of each round after the warm-up rises."""
    begun = max(WARM_UP * seen.seconds, WARM_UP_LEAST)
    least: dict[int, float] = {}
    for sample in seen.samples:
        if sample.at >= begun:
            number = int((sample.at - begun) // ROUND)
            least[number] = min(least.get(number, sample.resident), sample.resident)
    if len(least) < 2:
        return 0.0
    middle, level = sum(least) / len(least), sum(least.values()) / len(least)
    spread = sum((number - middle) ** 2 for number in least)
    slope = sum((number - middle) * (resident - level) for number, resident in least.items()) / spread
    return slope * (max(least) - min(least))


def _journal_limit(seen: Seen) -> float:
    jobs = sum(call.what == "Submit" for call in seen.calls)
    return max(JOURNAL_LEAST, JOURNAL_AN_HOUR * seen.seconds / HOUR) + JOURNAL_A_JOB * jobs


def journal(samples: Sequence[Sample]) -> int:
    """Bytes that were logged from the first sample to the last."""
    return samples[-1].journal - samples[0].journal if samples else 0


def table(seen: Seen, rows: Sequence[Row]) -> str:
    """What a person reads."""
    lines = [f"{'bar':<36} {'found':>12} {'limit':>12}"]
    for row in rows:
        mark = "" if row.met else f"  MISSED {row.note}".rstrip()
        lines.append(f"{row.bar:<36} {row.found:>12,.3f} {row.limit:>12,.3f} {row.unit}{mark}")
    lines.append("")
    for what in sorted({call.what for call in seen.calls}):
        times = _times([call for call in seen.calls if call.what == what])
        middle, late, longest = percentile(times, 50), percentile(times, 99), max(times)
        lines.append(f"{what:<14} {len(times):>6} calls, median {middle:.3f}, p99 {late:.3f}, longest {longest:.3f} s")
    if seen.samples:
        memory = [sample.resident for sample in seen.samples]
        lines.append(f"memory: {memory[0]:.0f} MiB at first, {max(memory):.0f} most, {memory[-1]:.0f} last")
    missed = [row.bar for row in rows if not row.met]
    lines.append(f"missed: {', '.join(missed)}" if missed else f"held for {seen.seconds / 60:g} minutes")
    return "\n".join(lines) + "\n"


def _p99(seconds: float) -> float:
    return SHORT_P99 if seconds < SHORT else P99


def _times(calls: Sequence[Call]) -> list[float]:
    return [call.seconds for call in calls]


def _at_most(bar: str, found: float, limit: float, unit: str, note: str = "") -> Row:
    return Row(bar=bar, found=found, limit=limit, unit=unit, met=found <= limit, note=note)
