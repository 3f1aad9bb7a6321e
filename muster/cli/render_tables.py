"""The look of tables and words: one place for columns and colours."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeAlias

from rich.table import Table
from rich.text import Text

from muster.domain.lifecycle import JobPhase, State
from muster.domain.node import NodeState

Cell: TypeAlias = "str | Text"

_STYLES: Mapping[type[StrEnum], Mapping[str, str]] = {
    JobPhase: {
        JobPhase.QUEUED: "yellow",
        JobPhase.PREPARING: "cyan",
        JobPhase.RUNNING: "blue",
        JobPhase.STOPPING: "magenta",
        JobPhase.SUCCEEDED: "green",
        JobPhase.FAILED: "red",
        JobPhase.STOPPED: "magenta",
    },
    State: {
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


def listing(headers: Iterable[str], rows: Iterable[Iterable[Cell]]) -> Table:
    """A table without lines; text of users is shown as it is, never as markup. Headers that begin with > go right."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(
            Text(header.removeprefix(">")),
            justify="right" if header.startswith(">") else "left",
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def facts(pairs: Iterable[tuple[str, Cell]]) -> Table:
    """Names and values, one pair a line; pairs without a value are left out."""
    table = Table(box=None, pad_edge=False, show_header=False, show_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            table.add_row(Text(name), value if isinstance(value, Text) else Text(value))
    return table


def word(value: StrEnum) -> Text:
    """A state or phase in its colour, as people write it."""
    return Text(value.replace("_", " "), style=_STYLES[type(value)][value])
