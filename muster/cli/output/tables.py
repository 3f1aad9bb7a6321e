"""The look of tables and words: one place for columns and colours."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeAlias

from rich.table import Table
from rich.text import Text

from muster.domain.fleet.node import NodeState
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.visible_text import visible

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
    """A table without lines; headers that begin with > go right. Text of others is never markup, and has one line."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(
            Text(header.removeprefix(">")),
            justify="right" if header.startswith(">") else "left",
            overflow="fold",
        )
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
