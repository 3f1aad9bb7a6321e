"""What is printed without Rich is what Rich would print."""

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from muster.cli.output.plain.table import plain_table
from muster.cli.output.tables import listing

HEADERS = ("ID", "NAME", ">AGE", "SUMMARY")
WIDTH = 200
CELLS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40).map(str.strip)


def by_rich(rows: list[list[str]]) -> str:
    out = StringIO()
    Console(file=out, width=WIDTH, highlight=False).print(listing(HEADERS, rows))
    return out.getvalue()


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert plain_table(HEADERS, [["j7k2", "ring", "2 min", "waits"]], WIDTH) == (
        "ID    NAME    AGE  SUMMARY\nj7k2  ring  2 min  waits  \n"
    )


@given(st.lists(st.lists(CELLS, min_size=4, max_size=4), max_size=4))
def test_it_is_what_rich_makes_of_it(rows: list[list[str]]) -> None:
    assert plain_table(HEADERS, rows, WIDTH) == by_rich(rows)


@pytest.mark.parametrize("text", ["größer", "two\nlines", "a\ttab", "\x1b[31m", " indented", "x" * WIDTH])
def test_what_only_rich_can_lay_out_is_left_to_it(text: str) -> None:
    assert plain_table(HEADERS, [["a", "b", "c", text]], WIDTH) is None
