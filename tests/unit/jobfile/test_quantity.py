"""Sizes, CPU counts and durations."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.quantity import MAX_CPUS, MAX_DURATION, MAX_MEMORY, format_cpus, format_duration, format_memory
from muster.jobfile import FieldError
from muster.jobfile.quantity import parse_cpus, parse_duration, parse_memory

MEMORY = "a size such as 16Gi, 500M or 1.5G, or a number of bytes"
CPUS = "a number of CPUs such as 2, 0.5 or 500m"
DURATION = "a duration such as 90s, 10m or 1h30m, or a number of seconds"
UNITS = "k, M, G, T, P, Ki, Mi, Gi, Ti, Pi"


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("16Gi", 16 * 2**30),
        ("500M", 500_000_000),
        ("1.5G", 1_500_000_000),
        ("0.5Ki", 512),
        (" 2 Mi ", 2 * 2**20),
        ("3k", 3000),
        ("1Pi", 2**50),
    ],
)
def test_sizes_are_bytes(written: str | int, size: int) -> None:
    assert parse_memory(written) == size


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (0, f"must be above zero: {MEMORY}"),
        ("0Gi", f"must be above zero: {MEMORY}"),
        (-1, "must be above zero, not -1"),
        ("-1", 'must be above zero, not "-1"'),
        ("1Gx", f'has the unknown unit "Gx"; there are {UNITS}'),
        ("16GB", f'has the unknown unit "GB"; there are {UNITS}; did you mean "16G"?'),
        ("16gib", f'has the unknown unit "gib"; there are {UNITS}; did you mean "16Gi"?'),
        ("500m", f'has the unknown unit "m"; there are {UNITS}; did you mean "500M"?'),
        ("nan", f'must be {MEMORY}, not "nan"'),
        (float("nan"), f'must be {MEMORY}, not "nan"'),
        (float("inf"), f'must be {MEMORY}, not "inf"'),
        ("", f'must be {MEMORY}, not ""'),
        ("1e9", f'must be {MEMORY}, not "1e9"'),
        ("1.5", 'is not a whole number of bytes: "1.5"'),
        ("9Ei", f'has the unknown unit "Ei"; there are {UNITS}'),
        ("9999Pi", 'is more than 1024Pi: "9999Pi"'),
        (True, f"must be {MEMORY}, not true"),
    ],
)
def test_what_is_no_size_is_refused(written: str | float, message: str) -> None:
    with pytest.raises(FieldError) as refusal:
        parse_memory(written)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("written", "millis"),
    [(2, 2000), (0.1, 100), ("0.5", 500), ("500m", 500), ("1.234", 1234), ("100000", 100_000_000)],
)
def test_cpus_are_thousandths(written: str | float, millis: int) -> None:
    assert parse_cpus(written) == millis


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (0, f"must be above zero: {CPUS}"),
        ("-0.5", 'must be above zero, not "-0.5"'),
        ("0.0001", 'is finer than a thousandth of a CPU: "0.0001"'),
        ("0.5m", 'is finer than a thousandth of a CPU: "0.5m"'),
        ("two", f'must be {CPUS}, not "two"'),
        ("1Gx", f'must be {CPUS}, not "1Gx"'),
        (float("nan"), f'must be {CPUS}, not "nan"'),
        (False, f"must be {CPUS}, not false"),
        (100_001, 'is more than 100000 CPUs: "100001"'),
    ],
)
def test_what_is_no_number_of_cpus_is_refused(written: str | float, message: str) -> None:
    with pytest.raises(FieldError) as refusal:
        parse_cpus(written)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172_800),
        ("1d1h1m1.5s", 90_061.5),
        ("250ms", 0.25),
        (0.5, 0.5),
    ],
)
def test_durations_add_up(written: str | float, seconds: float) -> None:
    assert parse_duration(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (0, f"must be above zero: {DURATION}"),
        ("0m0s", f"must be above zero: {DURATION}"),
        (-1, "must be above zero, not -1"),
        ("", f'must be {DURATION}, not ""'),
        ("30m1h", f'must be {DURATION}, not "30m1h"'),
        ("10 min", f'must be {DURATION}, not "10 min"'),
        ("nan", f'must be {DURATION}, not "nan"'),
        (True, f"must be {DURATION}, not true"),
        ("0.0001ms", 'is finer than a microsecond: "0.0001ms"'),
        ("366d", 'is longer than 365d: "366d"'),
    ],
)
def test_what_is_no_duration_is_refused(written: str | float, message: str) -> None:
    with pytest.raises(FieldError) as refusal:
        parse_duration(written)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("size", "text"),
    [(2**34, "16Gi"), (500_000_000, "500M"), (1536, "1536"), (2**20 * 1000, "1000Mi"), (0, "0")],
)
def test_a_size_is_written_with_the_largest_unit_that_is_exact(size: int, text: str) -> None:
    assert format_memory(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(90, "1m30s"), (5400, "1h30m"), (0.25, "0.25s"), (86_400, "1d"), (0, "0s")],
)
def test_a_duration_is_written_in_its_parts(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


@given(st.integers(1, MAX_MEMORY))
def test_every_size_comes_back(size: int) -> None:
    assert parse_memory(format_memory(size)) == size


@given(st.integers(1, MAX_CPUS * 1000))
def test_every_number_of_cpus_comes_back(millis: int) -> None:
    assert parse_cpus(format_cpus(millis)) == millis


@given(st.timedeltas(timedelta(microseconds=1), MAX_DURATION))
def test_every_duration_comes_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans()))
def test_anything_is_a_quantity_or_refused(written: str | float) -> None:
    for parse in (parse_memory, parse_cpus, parse_duration):
        try:
            parse(written)
        except FieldError as refusal:
            assert refusal.message  # noqa: PT017 - both ways are fine, another exception is not
