"""Quantities in the words of people."""

from collections.abc import Iterable
from datetime import datetime, timedelta

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_SPANS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def size_text(size: int) -> str:
    """Bytes with three digits or so: `512 B`, `31.3 GiB`."""
    value, unit = float(size), 0
    while value >= _STEP and unit < len(_SIZES) - 1:
        value, unit = value / _STEP, unit + 1
    digits = f"{value:.1f}" if value < 100 else f"{value:.0f}"  # noqa: PLR2004 - three digits
    return f"{digits.removesuffix('.0')} {_SIZES[unit]}"


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


def ranks_text(ranks: Iterable[int]) -> str:
    """Ranks in few words: `0, 2-5`."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
