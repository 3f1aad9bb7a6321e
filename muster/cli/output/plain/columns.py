"""Tables that fit the width there is: columns are left out or cut with `…`, and no word is ever folded."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

GAP = 2
"""Blanks between two columns."""
_CUT_MARK = "…"
_NARROWEST = 4
"""Characters that a column keeps where even the needed columns do not fit."""

Measure: TypeAlias = Callable[[str], int]
"""Columns of a terminal that a text takes."""


class Column(NamedTuple):
    """One column of a table."""

    header: str
    right: bool = False
    spare: int = 0
    """0: always shown; where there is too little room the column with the highest number is left out first."""
    least: int = 0
    """Characters down to which cells may be cut; 0: they are never cut as long as anything else can give way."""

    @classmethod
    def of(cls, said: "str | Column") -> "Column":
        """A column as it is, or from its header; one that begins with > goes right."""
        return said if isinstance(said, Column) else cls(said.removeprefix(">"), right=said.startswith(">"))


def fitted(columns: Sequence[Column], natural: Sequence[int], width: int | None) -> dict[int, int]:
    """Which columns are shown, by place, and how wide each is; `natural` is the widest cell of each.

    Without a width everything is shown whole.
    """
    chosen = dict(enumerate(natural))
    if width is None:
        return chosen
    for place in sorted(chosen, key=lambda each: -columns[each].spare):
        if not columns[place].spare or _total(_least(columns, chosen)) <= width:
            break
        del chosen[place]
    least = _least(columns, chosen)
    if _total(least) > width:
        least = {place: min(wide, _NARROWEST) for place, wide in least.items()}
    return _narrowed(chosen, least, width)


def cut(text: str, width: int, measure: Measure = len) -> str:
    """The text, or its beginning with `…` where it is wider."""
    if measure(text) <= width:
        return text
    kept = text[: max(0, width - 1)]
    while measure(kept) > width - 1:
        kept = kept[:-1]
    return kept + _CUT_MARK


def lines_of(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, measure: Measure = len
) -> Iterator[str]:
    """The table as text, with its headers."""
    natural = [_widest(column, rows, place, measure) for place, column in enumerate(columns)]
    widths = fitted(columns, natural, width)
    for row in ([column.header for column in columns], *rows):
        cells = [
            _padded(cut(row[place], wide, measure), wide, columns[place], measure) for place, wide in widths.items()
        ]
        yield (" " * GAP).join(cells).rstrip()


def _widest(column: Column, rows: Sequence[Sequence[str]], place: int, measure: Measure) -> int:
    return max([measure(column.header), *(measure(row[place]) for row in rows)])


def _padded(text: str, width: int, column: Column, measure: Measure) -> str:
    blanks = " " * max(0, width - measure(text))
    return blanks + text if column.right else text + blanks


def _least(columns: Sequence[Column], chosen: dict[int, int]) -> dict[int, int]:
    return {
        place: min(wide, max(columns[place].least, len(columns[place].header))) if columns[place].least else wide
        for place, wide in chosen.items()
    }


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + GAP * max(0, len(widths) - 1)


def _narrowed(widths: dict[int, int], least: dict[int, int], width: int) -> dict[int, int]:
    """The widest cells give way first, none below its least width."""
    widths = dict(widths)
    while (over := _total(widths) - width) > 0:
        giving = {place: wide for place, wide in widths.items() if wide > least[place]}
        if not giving:
            break
        widest = max(giving.values())
        level = max([wide for wide in giving.values() if wide < widest], default=0)
        among = [place for place, wide in giving.items() if wide == widest]
        step = max(1, min(widest - level, -(-over // len(among))))
        for place in among:
            widths[place] = max(least[place], widest - step)
    return widths
