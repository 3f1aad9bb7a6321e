"""Tables fit the width there is, and look the same with Rich and without."""

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from muster.cli.output.plain.columns import Column, cut, fitted, lines_of
from muster.cli.output.tables import listing

COLUMNS = (
    Column("ID"),
    Column("NAME", least=6),
    Column("GPUS", right=True, spare=2),
    Column("AGE", right=True, spare=1),
    Column("SUMMARY", least=8),
)
CELLS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40).map(str.strip)
ROWS = st.lists(st.lists(CELLS, min_size=5, max_size=5), max_size=4)
ROW = ("j7k2", "a-rather-long-name", "8", "2 min", "waits for its turn in the queue")


def by_rich(rows: list[list[str]], width: int) -> list[str]:
    out = StringIO()
    Console(file=out, width=width, highlight=False).print(listing(COLUMNS, rows))
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            None,
            [
                "ID    NAME                GPUS    AGE  SUMMARY",
                "j7k2  a-rather-long-name     8  2 min  waits for its turn in the queue",
            ],
        ),
        (
            60,
            [
                "ID    NAME                GPUS    AGE  SUMMARY",
                "j7k2  a-rather-long-name     8  2 min  waits for its turn i…",
            ],
        ),
        (30, ["ID    NAME       AGE  SUMMARY", "j7k2  a-rath…  2 min  waits f…"]),
        (22, ["ID    NAME    SUMMARY", "j7k2  a-rat…  waits f…"]),
        (12, ["ID    NAME  SUM…", "j7k2  a-r…  wai…"]),  # no narrower: a terminal of that width is none
    ],
)
def test_columns_give_way_and_words_are_cut_but_never_folded(width: int | None, lines: list[str]) -> None:
    assert list(lines_of(COLUMNS, [ROW], width)) == lines


@given(ROWS, st.integers(30, 200))
def test_a_table_is_as_wide_as_the_room_at_most(rows: list[list[str]], width: int) -> None:
    assert all(len(line) <= width for line in lines_of(COLUMNS, rows, width))


@given(ROWS, st.integers(30, 200))
def test_it_is_the_same_with_rich_and_without(rows: list[list[str]], width: int) -> None:
    assert list(lines_of(COLUMNS, rows, width)) == [line.rstrip() for line in by_rich(rows, width)]


@given(ROWS)
def test_without_a_width_nothing_is_cut(rows: list[list[str]]) -> None:
    assert fitted(COLUMNS, [50] * 5, None) == dict.fromkeys(range(5), 50)
    shown = "\n".join(lines_of(COLUMNS, rows, None))
    assert all(cell in shown for row in rows for cell in row)


def test_the_most_spare_column_goes_first() -> None:
    natural = [4, 6, 4, 5, 8]

    assert sorted(fitted(COLUMNS, natural, 35)) == [0, 1, 2, 3, 4]
    assert sorted(fitted(COLUMNS, natural, 34)) == [0, 1, 3, 4]
    assert sorted(fitted(COLUMNS, natural, 28)) == [0, 1, 4]


def test_a_cut_text_says_so() -> None:
    assert (cut("abcdef", 6), cut("abcdef", 4), cut("ab  ef", 4)) == ("abcdef", "abc…", "ab …")
