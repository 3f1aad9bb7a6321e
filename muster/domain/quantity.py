"""Counts, sizes and durations as people read them; `muster.jobfile.quantity` reads what people write."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

BINARY_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
MEMORY_UNITS: Mapping[str, int] = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15} | BINARY_UNITS
"""Bytes by unit."""
MICROSECONDS: Mapping[str, int] = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1000,
}
"""Microseconds by unit of time."""
MILLIS_PER_CPU = 1000

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024

MAX_MEMORY = 2**60
MAX_CPUS = 100_000
MAX_DURATION = timedelta(days=365)

MEMORY_FORM = "a size such as 16Gi, 500M or 1.5G, or a number of bytes"
CPUS_FORM = "a number of CPUs such as 2, 0.5 or 500m"
MOMENT_FORM = "a time with its zone such as 2026-12-01T18:00:00Z or 2026-12-01 18:00+01:00"
DURATION_FORM = "a duration such as 90s, 10m or 1h30m, or a number of seconds"


def counted(count: int, noun: str) -> str:
    """Say how many there are: `1 execution`, `3 executions`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def size_text(size: int) -> str:
    """Bytes with three digits or so: `512 B`, `31.3 GiB`."""
    value, unit = float(size), 0
    while value >= _STEP and unit < len(_SIZES) - 1:
        value, unit = value / _STEP, unit + 1
    digits = f"{value:.1f}" if value < 100 else f"{value:.0f}"  # noqa: PLR2004 - three digits
    return f"{digits.removesuffix('.0')} {_SIZES[unit]}"


def format_memory(size: int) -> str:
    """A size with the largest unit that says it exactly: `16Gi`, `500M`; parses to the same number."""
    for unit, factor in sorted(MEMORY_UNITS.items(), key=lambda item: -item[1]):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def format_cpus(millis: int) -> str:
    """`2`, `0.5`, `1.234`; parses to the same number."""
    whole, rest = divmod(millis, MILLIS_PER_CPU)
    return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)


def format_duration(duration: timedelta) -> str:
    """`1h30m`, `90s` as `1m30s`, `0.25s`; parses to the same duration."""
    left = duration // timedelta(microseconds=1)
    parts = []
    for unit in ("d", "h", "m"):
        count, left = divmod(left, MICROSECONDS[unit])
        parts.append(f"{count}{unit}" if count else "")
    seconds, micros = divmod(left, MICROSECONDS["s"])
    fraction = f".{micros:06}".rstrip("0") if micros else ""
    parts.append(f"{seconds}{fraction}s" if seconds or micros else "")
    return "".join(parts) or "0s"


def moment_text(at: datetime) -> str:
    """A time in UTC, for people: `2026-12-01 18:00:00 UTC`."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def format_moment(at: datetime) -> str:
    """`2026-12-01T18:00:00Z`; parses to the same time."""
    text = at.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{text}Z"


TOO_MUCH_MEMORY = f"is more than {format_memory(MAX_MEMORY)}"
TOO_MANY_CPUS = f"is more than {MAX_CPUS} CPUs"
TOO_LONG = f"is longer than {format_duration(MAX_DURATION)}"
