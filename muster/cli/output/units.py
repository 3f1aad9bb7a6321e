"""Quantities in the words of people."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from muster.domain.quantity import size_text

__all__ = [
    "between_text",
    "cpus_text",
    "in_local_time",
    "labels_text",
    "ranks_text",
    "size_text",
    "span_text",
    "time_text",
]

_SPANS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def cpus_text(millis: int) -> str:
    """Thousandths of CPUs as CPUs: `8`, `0.5`."""
    return f"{millis / 1000:.3f}".rstrip("0").rstrip(".")


def span_text(span: timedelta) -> str:
    """A duration in its two largest units: `120 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    left, parts = int(seconds), []
    for unit, length in _SPANS:
        count, left = divmod(left, length)
        parts.append((count, unit))
    first = next(place for place, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


def between_text(start: datetime | None, end: datetime | None) -> str:
    """How long something took; empty where it did not begin or end."""
    return "" if start is None or end is None else span_text(end - start)


def time_text(at: datetime | None) -> str:
    """A moment in local time; empty for none."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def in_local_time(text: str, now: datetime) -> str:
    """The text of a coordinator with its times in local time.

    They are written `2026-11-21 09:30:00 UTC`, or `09:30:00 UTC` of the day next to `now`.
    """

    def local(found: re.Match[str]) -> str:
        hour, minute, second = map(int, found.groups())
        at = now.astimezone(UTC).replace(hour=hour, minute=minute, second=second, microsecond=0)
        days = (at + timedelta(days=shift) for shift in (-1, 0, 1))
        return f"{min(days, key=lambda day: abs(day - now)).astimezone():%H:%M:%S}"

    def local_moment(found: re.Match[str]) -> str:
        try:
            return time_text(datetime.fromisoformat(f"{found.group(1)}+00:00"))
        except (ValueError, OverflowError):  # it only looks like a time
            return found.group()

    text = re.sub(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC\b", local_moment, text)
    return re.sub(r"\b([01]\d|2[0-3]):([0-5]\d):([0-5]\d) UTC\b", local, text)


def labels_text(labels: Mapping[str, str]) -> str:
    """`pool=a, rack=7`."""
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def ranks_text(ranks: Iterable[int]) -> str:
    """Ranks in few words: `0, 2-5`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
