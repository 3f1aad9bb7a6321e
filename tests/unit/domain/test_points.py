"""Which lines are points, what they say, and which of many are taken."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.telemetry.point import (
    MAX_POINT,
    MAX_POINT_KEY,
    MAX_POINT_KEYS,
    MAX_POINT_TEXT,
    evenly,
    parse_point,
)


def test_an_object_with_numbers_is_a_point() -> None:
    assert parse_point(b'{"step": 12, "loss": 0.5, "phase": "warm up"}') == (
        {"step": 12.0, "loss": 0.5},
        {"phase": "warm up"},
    )


def test_what_is_no_number_and_no_text_is_left_out() -> None:
    said = b'{"a": 1, "b": true, "c": null, "d": [1], "e": {"f": 2}, "g": NaN, "h": -Infinity, "i": 1e999, "": 4}'

    assert parse_point(said) == ({"a": 1.0}, {})


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[1]",
        b"12",
        b'{"loss": "0.5"}',
        b'{"loss": NaN}',
        b'{"done": true}',
        b'{"loss": 0.5',
        b'{"loss": 0.5} and more',
        b' {"loss": 0.5}',
        b'{"loss": 0.5, }',
        b"{'loss': 0.5}",
        b'{"a":' * 3000 + b"1" + b"}" * 3000,
        b'{"n": ' + b"9" * 5000 + b"}",
        b'{"\xff": 1}',
        b'{"a": 1' + b" " * MAX_POINT + b"}",
    ],
)
def test_no_other_line_is_a_point(line: bytes) -> None:
    assert parse_point(line) is None


def test_a_number_that_no_float_holds_is_left_out() -> None:
    assert parse_point(b'{"n": ' + b"9" * 400 + b', "m": 1}') == ({"m": 1.0}, {})


def test_of_too_many_keys_the_first_are_kept_and_of_a_long_text_the_beginning() -> None:
    many = json.dumps({f"k{number}": number for number in range(MAX_POINT_KEYS + 5)}).encode()
    long = json.dumps({"k" * (MAX_POINT_KEY + 1): 1, "n": 2, "t": "x" * (MAX_POINT_TEXT + 1)}).encode()

    found, longest = parse_point(many), parse_point(long)

    assert found is not None
    assert list(found[0]) == [f"k{number}" for number in range(MAX_POINT_KEYS)]
    assert longest == ({"n": 2.0}, {"t": "x" * MAX_POINT_TEXT})


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f'{{"{text}": 1}}'.encode()))
def test_whatever_is_printed_nobody_falls_over_it(line: bytes) -> None:
    found = parse_point(line)

    assert found is None or found[0]


@given(st.integers(0, 10_000), st.integers(0, 500))
def test_places_are_even_and_the_last_is_there(count: int, most: int) -> None:
    places = list(evenly(count, most))

    assert len(places) == len(set(places)) == min(count, most)
    assert places == sorted(places)
    if places:
        assert places[-1] == count - 1
    if len(places) > 1:
        gaps = [after - before for before, after in pairwise(places)]
        assert places[0] == 0
        assert max(gaps) - min(gaps) <= 1
