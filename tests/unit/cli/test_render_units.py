"""Quantities in the words of people."""

from datetime import timedelta

import pytest

from muster.cli.output.units import cpus_text, ranks_text, size_text, span_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 ms"),
        (0.1234, "123 ms"),
        (12.34, "12.3 s"),
        (60, "1 min"),
        (250, "4 min 10 s"),
        (7500, "2 h 5 min"),
        (86400, "1 d"),
        (90061, "1 d 1 h"),
    ],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert span_text(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (512, "512 B"), (2**34, "16 GiB"), (33_567_334_400, "31.3 GiB"), (2**60, "1024 PiB")],
)
def test_a_size_has_three_digits_or_so(size: int, text: str) -> None:
    assert size_text(size) == text


def test_cpus_are_told_without_needless_digits() -> None:
    assert [cpus_text(millis) for millis in (8000, 500, 1250, 0)] == ["8", "0.5", "1.25", "0"]


def test_ranks_in_a_row_are_drawn_together() -> None:
    assert ranks_text([5, 0, 2, 3, 4]) == "0, 2-5"
