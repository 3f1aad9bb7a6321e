"""Sizes, CPU counts and durations as people write them, and back; for job files and for flags."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from muster.domain.jobs.placing.portion import PORTION_FORM, WHOLE_GPU
from muster.domain.quantity import (
    BINARY_UNITS,
    CPUS_FORM,
    DURATION_FORM,
    MAX_CPUS,
    MAX_DURATION,
    MAX_MEMORY,
    MEMORY_FORM,
    MEMORY_UNITS,
    MICROSECONDS,
    MILLIS_PER_CPU,
    MOMENT_FORM,
    TOO_LONG,
    TOO_MANY_CPUS,
    TOO_MUCH_MEMORY,
)
from muster.domain.quoting import quote
from muster.jobfile.errors import FieldError

Written: TypeAlias = "str | int | float"
"""A quantity as it was written, or as a number that YAML or Python already read."""

NO_LIMIT = "none"
"""The word for a limit that is not there."""
_DIGITS = 30
"""After the point."""
_FINEST: int = 10**_DIGITS
"""What is written is counted in such parts of one, so that whole numbers are all it takes to be exact."""
_NUMBER = r"[0-9]{1,30}(?:\.[0-9]{1,30})?"
# Compiled when first asked for: most jobs need one of them.
_MEMORY = rf"({_NUMBER})\s?([A-Za-z]*)"
_CPUS = rf"({_NUMBER})(m?)"
MOMENT_PATTERN = (
    r"[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]"
    r"(:[0-5][0-9](\.[0-9]{1,6})?)? ?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
"""The pattern of a time with its zone."""
_DURATION = rf"(?:({_NUMBER})d)?(?:({_NUMBER})h)?(?:({_NUMBER})m)?(?:({_NUMBER})s)?(?:({_NUMBER})ms)?"


def parse_memory(value: Written) -> int:
    """Bytes; raises FieldError for what is not a size above zero."""
    text = _text(value, MEMORY_FORM)
    match = re.fullmatch(_MEMORY, text)
    if match is None:
        raise FieldError(f"must be {MEMORY_FORM}, not {quote(text)}")
    number, unit = match.groups()
    if unit not in MEMORY_UNITS:
        raise FieldError(
            f"has the unknown unit {quote(unit)}; there are {_memory_units()}", suggestion=_unit(number, unit)
        )
    size, rest = divmod(_parts_of_one(number) * MEMORY_UNITS[unit], _FINEST)
    _refuse_zero(size + rest, MEMORY_FORM)
    if rest:
        raise FieldError(f"is not a whole number of bytes: {quote(text)}")
    if size > MAX_MEMORY:
        raise FieldError(f"{TOO_MUCH_MEMORY}: {quote(text)}")
    return size


def parse_gpu_portion(value: Written) -> int:
    """Thousandths of a GPU; raises FieldError for what is not a number with at most three digits after the point."""
    text = _text(value, PORTION_FORM)
    thousandths, rest = divmod(_parts_of_one(text) * WHOLE_GPU, _FINEST) if re.fullmatch(_NUMBER, text) else (0, 1)
    if rest:
        raise FieldError(f"must be {PORTION_FORM}, not {quote(text)}")
    return thousandths


def parse_cpus(value: Written) -> int:
    """Thousandths of a CPU; raises FieldError for what is not a number of CPUs above zero."""
    text = _text(value, CPUS_FORM)
    match = re.fullmatch(_CPUS, text)
    if match is None:
        raise FieldError(f"must be {CPUS_FORM}, not {quote(text)}")
    number, milli = match.groups()
    millis, rest = divmod(_parts_of_one(number) * (1 if milli else MILLIS_PER_CPU), _FINEST)
    _refuse_zero(millis + rest, CPUS_FORM)
    if rest:
        raise FieldError(f"is finer than a thousandth of a CPU: {quote(text)}")
    if millis > MAX_CPUS * MILLIS_PER_CPU:
        raise FieldError(f"{TOO_MANY_CPUS}: {quote(text)}")
    return millis


def parse_moment(value: Written) -> datetime:
    """A time in UTC; raises FieldError for what is no time, or one without a zone."""
    text = str(value)
    if isinstance(value, str) and re.fullmatch(MOMENT_PATTERN, text):
        day, clock, rest = text[:10], text[11:16], text[16:].replace(" ", "").upper().replace("Z", "+00:00")
        seconds, zone = (rest[:-6] or ":00"), rest[-6:]
        with suppress(ValueError):  # there is no such day
            return datetime.fromisoformat(f"{day}T{clock}{_to_microseconds(seconds)}{zone}").astimezone(UTC)
    raise FieldError(f"must be {MOMENT_FORM}, not {quote(text)}")


def _to_microseconds(seconds: str) -> str:
    """`:07.5` as `:07.500000`, which every Python reads."""
    whole, point, fraction = seconds.partition(".")
    return f"{whole}{point}{fraction:0<6}" if point else whole


def parse_duration(value: Written) -> timedelta:
    """A span of time; raises FieldError for what is not a duration above zero."""
    text = _text(value, DURATION_FORM)
    microseconds, rest = divmod(_seconds(text) if re.fullmatch(_NUMBER, text) else _parts(text), _FINEST)
    _refuse_zero(microseconds + rest, DURATION_FORM)
    if rest:
        raise FieldError(f"is finer than a microsecond: {quote(text)}")
    if microseconds > MAX_DURATION // timedelta(microseconds=1):
        raise FieldError(f"{TOO_LONG}: {quote(text)}")
    return timedelta(microseconds=microseconds)


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
    return ", ".join([*(unit for unit in MEMORY_UNITS if unit and unit not in BINARY_UNITS), *BINARY_UNITS])


def _unit(number: str, unit: str) -> str | None:
    """The quantity with the unit that was probably meant (`16GB`, `16gb`, `16GiB`, `16gi`)."""
    letters = unit.lower().removesuffix("b")
    return next((number + known for known in MEMORY_UNITS if known and known.lower() == letters), None)


def _parts_of_one(number: str) -> int:
    whole, _, rest = number.partition(".")
    return int(whole + rest.ljust(_DIGITS, "0"))


def _seconds(text: str) -> int:
    return _parts_of_one(text) * MICROSECONDS["s"]


def _parts(text: str) -> int:
    match = re.fullmatch(_DURATION, text)
    if not text or match is None:
        raise FieldError(f"must be {DURATION_FORM}, not {quote(text)}")
    pairs = zip(match.groups(), MICROSECONDS.values(), strict=True)
    return sum(_parts_of_one(number) * size for number, size in pairs if number)
