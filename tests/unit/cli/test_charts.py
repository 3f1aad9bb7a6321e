"""Lines of dots, sparklines and numbers that fit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.output.metrics.chart import chart, number_text, sparkline
from muster.cli.output.metrics.series import MetricSeries, smoothed

numbers = st.floats(allow_nan=False, allow_infinity=False)


def drawn(*series: MetricSeries, width: int = 24, height: int = 4, logarithmic: bool = False) -> list[str]:
    lines = chart("loss", series, "step", width=width, height=height, logarithmic=logarithmic)
    return ["".join(span.text for span in line) for line in lines]


def series(*places: tuple[float, float], label: str = "rank 0") -> MetricSeries:
    return MetricSeries(label=label, places=places)


def test_a_line_goes_from_its_first_place_to_its_last() -> None:
    assert drawn(series((0, 0), (10, 10))) == [
        "loss",
        "         10 ┤        ⢀⠔⠊",
        "            │     ⢀⠤⠊⠁  ",
        "      3.333 ┤  ⢀⡠⠒⠁     ",
        "          0 ┤⡠⠔⠁        ",
        "            └───────────",
        "             0   step 10",
    ]


def test_what_is_not_above_zero_has_no_logarithm() -> None:
    assert drawn(series((0, 0), (1, -1)), logarithmic=True) == [
        "loss: nothing is above zero, so there is no logarithm to draw"
    ]
    assert drawn(series((0, 1), (1, 0), (2, 100)), logarithmic=True)[1].split()[0] == "100"


def test_of_many_series_some_are_named() -> None:
    many = [series((0, number), label=f"rank {number}") for number in range(11)]

    assert drawn(*many)[-1].split("━ ")[1:] == [*(f"rank {number}  " for number in range(7)), "rank 7  and 3 more"]


@given(st.lists(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), min_size=1, max_size=4), st.booleans())
def test_whatever_the_numbers_are_a_chart_is_as_large_as_it_should_be(
    places: list[list[tuple[float, float]]], logarithmic: bool
) -> None:
    lines = drawn(*(series(*each) for each in places), width=40, height=5, logarithmic=logarithmic)

    if logarithmic and all(y <= 0 for each in places for _, y in each):
        assert len(lines) == 1
        return
    assert len(lines) == 5 + 3 + (len(places) > 1)
    assert {len(line) for line in lines[1:6]} == {40}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1200.0, "1200"), (-3.0, "-3"), (0.41234567, "0.4123"), (1e300, "1e+300"), (12345678.0, "1.235e+07")],
)
def test_a_number_is_short(value: float, text: str) -> None:
    assert number_text(value) == text


@given(numbers)
def test_every_number_fits_beside_a_chart(value: float) -> None:
    assert len(number_text(value)) <= 11


def test_a_sparkline_has_a_character_for_each_number_or_for_several() -> None:
    assert sparkline([1, 2, 3], 24) == "▁▅█"
    assert sparkline([5.0], 24) == "▁"
    assert sparkline([], 24) == ""
    assert sparkline([float(number) for number in range(80)], 8) == "▁▂▃▄▅▆▇█"


@given(st.lists(numbers, max_size=100), st.integers(1, 30))
def test_a_sparkline_is_never_wider_than_it_should_be(values: list[float], width: int) -> None:
    assert len(sparkline(values, width)) == min(len(values), width)


def test_an_average_follows_the_numbers_and_begins_where_they_do() -> None:
    said = series((0, 4), (1, 0), (2, 0))

    assert smoothed(said, 0).values == [4, 0, 0]
    averages = smoothed(said, 0.5).values
    assert averages[0] == 4
    assert math.isclose(averages[1], 4 / 3)
    assert list(averages) == sorted(averages, reverse=True)
