"""The look of tables and words: one place for columns and colours."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from muster.cli.output.plain.columns import GAP, Column, fitted
from muster.domain.fleet.node import NodeState
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.visible_text import visible

Cell: TypeAlias = "str | Text"

_STYLES: Mapping[type[StrEnum], Mapping[str, str]] = {
    JobPhase: {
        JobPhase.WAITING: "yellow",
        JobPhase.QUEUED: "yellow",
        JobPhase.PREPARING: "cyan",
        JobPhase.RUNNING: "blue",
        JobPhase.STOPPING: "magenta",
        JobPhase.STORING: "cyan",
        JobPhase.SUCCEEDED: "green",
        JobPhase.FAILED: "red",
        JobPhase.STOPPED: "magenta",
    },
    State: {
        State.WAITING: "yellow",
        State.QUEUED: "yellow",
        State.PLACED: "cyan",
        State.PREPARING: "cyan",
        State.CHECKED_IN: "green",
        State.ARMED: "green",
        State.RUNNING: "blue",
        State.STOPPING: "magenta",
        State.SUCCEEDED: "green",
        State.FAILED: "red",
        State.STOPPED: "magenta",
        State.LOST: "red",
    },
    NodeState: {NodeState.READY: "green", NodeState.UNREACHABLE: "yellow", NodeState.LOST: "red"},
}


class TextTable:
    """A table without lines, as wide as the room it is drawn in: see `columns`. No cell is ever folded."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> None:
        self._columns = columns
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """The table's lines, for Rich."""
        natural = [
            max([cell_len(column.header), *(row[place].cell_len for row in self._rows)])
            for place, column in enumerate(self._columns)
        ]
        widths = fitted(self._columns, natural, options.max_width)
        heads = [Text(column.header, style="bold") for column in self._columns]
        for row in (heads, *self._rows):
            line = Text(no_wrap=True, overflow="ignore")
            for place, width in widths.items():
                line.append(" " * GAP if line else "")
                line.append_text(_laid_out(row[place], width, right=self._columns[place].right))
            line.rstrip()
            yield line


def listing(headers: Iterable[str | Column], rows: Iterable[Iterable[Cell]]) -> TextTable:
    """A table without lines; headers that begin with > go right. Text of others is never markup, and has one line."""
    return TextTable([Column.of(header) for header in headers], [[*map(_cell, row)] for row in rows])


def _laid_out(cell: Text, width: int, *, right: bool) -> Text:
    """The cell in a column of that width, the rest of a longer one replaced by `…`."""
    shown = cell.copy()
    shown.truncate(width, overflow="ellipsis")
    blanks = " " * (width - shown.cell_len)
    return Text(blanks).append_text(shown) if right else shown.append(blanks)


def sentences(headers: Iterable[str], rows: Iterable[Iterable[Cell]]) -> Table:
    """A table whose last column has sentences, which go on in the next line where they must; the others are cut."""
    names = list(headers)
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False, padding=(0, 2, 0, 0))
    for header in names[:-1]:
        right = header.startswith(">")
        table.add_column(Text(header.removeprefix(">")), justify="right" if right else "left", no_wrap=True)
    table.add_column(Text(names[-1]), overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def shown(said: str, style: str = "", *, lines: bool = False) -> Text:
    """Text of whomever: no markup is read in it, nothing in it acts on a terminal; only with `lines` it has several."""
    return Text(visible(said, lines=lines), style=style)


def joined(*parts: Cell) -> Text:
    """One line of several parts, each in its own style."""
    return Text.assemble(*map(_cell, parts))


def facts(pairs: Iterable[tuple[str, Cell]]) -> Table:
    """Names and values, one pair a line; pairs without a value are left out."""
    table = Table(box=None, pad_edge=False, show_header=False, show_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            table.add_row(shown(name), value if isinstance(value, Text) else shown(value, lines=True))
    return table


def word(value: StrEnum) -> Text:
    """A state or phase in its colour, as people write it."""
    return shown(value.replace("_", " "), _STYLES[type(value)][value])


def _cell(said: Cell) -> Text:
    return said if isinstance(said, Text) else shown(said)
