"""Sizes, CPU counts and durations as people write them, and back; for job files and for flags."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TypeAlias

from muster.spec.errors import FieldError, quote

Written: TypeAlias = "str | int | float"
"""A quantity as it was written, or as a number that YAML or Python already read."""

MAX_MEMORY = 2**60
MAX_CPUS = 100_000
MAX_DURATION = timedelta(days=365)

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_MEMORY_UNITS: Mapping[str, int] = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15} | _BINARY
_MICROSECONDS: Mapping[str, int] = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1000,
}
_MILLIS_PER_CPU = 1000

_DIGITS = 30
"""After the point."""
_FINEST: int = 10**_DIGITS
"""What is written is counted in such parts of one, so that whole numbers are all it takes to be exact."""
_NUMBER = r"[0-9]{1,30}(?:\.[0-9]{1,30})?"
# Compiled when first asked for: most jobs need one of them.
_MEMORY = rf"({_NUMBER})\s?([A-Za-z]*)"
_CPUS = rf"({_NUMBER})(m?)"
_DURATION = rf"(?:({_NUMBER})d)?(?:({_NUMBER})h)?(?:({_NUMBER})m)?(?:({_NUMBER})s)?(?:({_NUMBER})ms)?"

_MEMORY_FORM = "a size such as 16Gi, 500M or 1.5G, or a number of bytes"
_CPUS_FORM = "a number of CPUs such as 2, 0.5 or 500m"
_DURATION_FORM = "a duration such as 90s, 10m or 1h30m, or a number of seconds"


def parse_memory(value: Written) -> int:
    """Bytes; raises FieldError for what is not a size above zero."""
    text = _text(value, _MEMORY_FORM)
    match = re.fullmatch(_MEMORY, text)
    if match is None:
        raise FieldError(f"must be {_MEMORY_FORM}, not {quote(text)}")
    number, unit = match.groups()
    if unit not in _MEMORY_UNITS:
        raise FieldError(
            f"has the unknown unit {quote(unit)}; there are {_memory_units()}", suggestion=_unit(number, unit)
        )
    size, rest = divmod(_parts_of_one(number) * _MEMORY_UNITS[unit], _FINEST)
    _refuse_zero(size + rest, _MEMORY_FORM)
    if rest:
        raise FieldError(f"is not a whole number of bytes: {quote(text)}")
    if size > MAX_MEMORY:
        raise FieldError(f"is more than {format_memory(MAX_MEMORY)}: {quote(text)}")
    return size


def parse_cpus(value: Written) -> int:
    """Thousandths of a CPU; raises FieldError for what is not a number of CPUs above zero."""
    text = _text(value, _CPUS_FORM)
    match = re.fullmatch(_CPUS, text)
    if match is None:
        raise FieldError(f"must be {_CPUS_FORM}, not {quote(text)}")
    number, milli = match.groups()
    millis, rest = divmod(_parts_of_one(number) * (1 if milli else _MILLIS_PER_CPU), _FINEST)
    _refuse_zero(millis + rest, _CPUS_FORM)
    if rest:
        raise FieldError(f"is finer than a thousandth of a CPU: {quote(text)}")
    if millis > MAX_CPUS * _MILLIS_PER_CPU:
        raise FieldError(f"is more than {MAX_CPUS} CPUs: {quote(text)}")
    return millis


def parse_duration(value: Written) -> timedelta:
    """A span of time; raises FieldError for what is not a duration above zero."""
    text = _text(value, _DURATION_FORM)
    microseconds, rest = divmod(_seconds(text) if re.fullmatch(_NUMBER, text) else _parts(text), _FINEST)
    _refuse_zero(microseconds + rest, _DURATION_FORM)
    if rest:
        raise FieldError(f"is finer than a microsecond: {quote(text)}")
    if microseconds > MAX_DURATION // timedelta(microseconds=1):
        raise FieldError(f"is longer than {format_duration(MAX_DURATION)}: {quote(text)}")
    return timedelta(microseconds=microseconds)


def format_memory(size: int) -> str:
    """A size with the largest unit that says it exactly: `16Gi`, `500M`; parses to the same number."""
    for unit, factor in sorted(_MEMORY_UNITS.items(), key=lambda item: -item[1]):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def format_cpus(millis: int) -> str:
    """`2`, `0.5`, `1.234`; parses to the same number."""
    whole, rest = divmod(millis, _MILLIS_PER_CPU)
    return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)


def format_duration(duration: timedelta) -> str:
    """`1h30m`, `90s` as `1m30s`, `0.25s`; parses to the same duration."""
    left = duration // timedelta(microseconds=1)
    parts = []
    for unit in ("d", "h", "m"):
        count, left = divmod(left, _MICROSECONDS[unit])
        parts.append(f"{count}{unit}" if count else "")
    seconds, micros = divmod(left, _MICROSECONDS["s"])
    fraction = f".{micros:06}".rstrip("0") if micros else ""
    parts.append(f"{seconds}{fraction}s" if seconds or micros else "")
    return "".join(parts) or "0s"


def _text(value: Written, form: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise FieldError(f"must be {form}, not {str(value).lower()}")
    text = str(value).strip()
    if text.startswith("-"):
        raise FieldError(f"must be above zero, not {text if isinstance(value, (int, float)) else quote(text)}")
    return text


def _refuse_zero(amount: int, form: str) -> None:
    if amount == 0:
        raise FieldError(f"must be above zero: {form}")


def _memory_units() -> str:
    return ", ".join([*(unit for unit in _MEMORY_UNITS if unit and unit not in _BINARY), *_BINARY])


def _unit(number: str, unit: str) -> str | None:
    """The quantity with the unit that was probably meant (`16GB`, `16gb`, `16GiB`, `16gi`)."""
    letters = unit.lower().removesuffix("b")
    return next((number + known for known in _MEMORY_UNITS if known and known.lower() == letters), None)


def _parts_of_one(number: str) -> int:
    whole, _, rest = number.partition(".")
    return int(whole + rest.ljust(_DIGITS, "0"))


def _seconds(text: str) -> int:
    return _parts_of_one(text) * _MICROSECONDS["s"]


def _parts(text: str) -> int:
    match = re.fullmatch(_DURATION, text)
    if not text or match is None:
        raise FieldError(f"must be {_DURATION_FORM}, not {quote(text)}")
    pairs = zip(match.groups(), _MICROSECONDS.values(), strict=True)
    return sum(_parts_of_one(number) * size for number, size in pairs if number)
