"""What an agent notes for the killer and for the agent after it: by when user code must be dead, and where it is."""

import json
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

LONGEST_SLEEP = 1.0
"""Seconds between looks at the clock while there are deadlines, as a machine that slept wakes in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionDeadline:
    """When one execution must be dead, and where it runs."""

    execution: str
    dead_by: float
    """The moment by CLOCK_BOOTTIME, in seconds."""
    directory: str
    """The directory of the execution, which tells of its processes."""
    container: str = ""
    """What its container is called, if it is one."""
    socket: str = ""
    """The socket of the Docker engine; empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """All of one node."""

    boot: str
    """The start of the machine in which they hold: nothing that runs outlives it."""
    agent: str
    """Names the life of the agent that wrote them."""
    deadlines: tuple[ExecutionDeadline, ...] = ()


def written(notes: Notes) -> bytes:
    """The notes as they are on disk."""
    entries = [{field.name: getattr(each, field.name) for field in fields(each)} for each in notes.deadlines]
    return json.dumps({"boot": notes.boot, "agent": notes.agent, "deadlines": entries}).encode() + b"\n"


def read(text: bytes) -> Notes:
    """What was written; raises ValueError for notes that are torn, or that this version does not know.

    After the first line there may be the end of longer ones that were here before.
    """
    try:
        facts: dict[str, Any] = json.loads(text.partition(b"\n")[0])
        deadlines = tuple(_deadline(**each) for each in facts["deadlines"])
        return Notes(boot=str(facts["boot"]), agent=str(facts["agent"]), deadlines=deadlines)
    except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"these are no notes: {error}") from error


def _deadline(*, dead_by: float, **names: str) -> ExecutionDeadline:
    """The deadline in what was read, which may be anything; raises TypeError, ValueError or OverflowError."""
    if not isfinite(dead_by) or not all(isinstance(name, str) for name in names.values()):
        raise ValueError("these are no notes: a deadline is no time, or a name no text")
    return ExecutionDeadline(dead_by=float(dead_by), **names)


def overdue(notes: Notes, at: float, boot: str) -> tuple[ExecutionDeadline, ...]:
    """What must be dead by now."""
    if notes.boot != boot:
        return ()
    return tuple(each for each in notes.deadlines if at >= each.dead_by)


def next_look(notes: Notes, at: float, boot: str) -> float | None:
    """Seconds until the notes must be looked at again; None: not before they change."""
    if notes.boot != boot or not notes.deadlines:
        return None
    return min([LONGEST_SLEEP, *(each.dead_by - at for each in notes.deadlines if each.dead_by > at)])
