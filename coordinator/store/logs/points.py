"""What user code told of itself, read from the logs of executions; they are kept nowhere else.

What is read costs in proportion to what is asked for, and not to the log, but for what nobody has looked through yet.
All methods block; the event loop leaves through `asyncio.to_thread`.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from json import dumps

from coordinator.store.logs.disk import disk_faults
from coordinator.store.logs.logs import LogStore
from coordinator.store.logs.point_index import DamagedIndexError, PointIndex, open_index
from muster.domain.gangs.log import parse_time
from muster.domain.ids import ExecutionId
from muster.domain.telemetry.point import MAX_POINTS, POINTS, STEP_KEYS, Point, evenly, parse_point

_Line = tuple[int, bytes, bytes]
"""Where a line begins, its time and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointChoice:
    """Which points of a log somebody wants."""

    keys: frozenset[str] = frozenset()
    """Only points with one of these, and only these of them besides what counts the steps; empty: all."""
    most: int = POINTS
    """The number of points; of more so many are taken, evenly."""
    after: int | None = None
    """Only points whose lines begin behind this offset, and the next ones one after the other; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointBatch:
    """Points of a log, in its order."""

    points: tuple[Point, ...] = ()
    all: int = 0
    """Lines of the log that may be points."""
    next_offset: int = -1
    """Go on behind this offset; -1: nothing was looked at yet."""
    at_end: bool = False
    """The log is complete, and nothing comes after these."""


class LogPoints:
    """Reads the points of logs."""

    def __init__(self, logs: LogStore) -> None:
        self._logs = logs

    def read(self, execution: ExecutionId, choice: PointChoice) -> PointBatch:
        """The points of a log that somebody wants, as far as the log goes now."""
        complete = self._logs.complete(execution)
        with self._logs.view(execution) as log, disk_faults(f"the points of {execution} cannot be listed"):
            if log is None:
                return PointBatch(at_end=complete)
            with suppress(FileNotFoundError), open_index(self._logs.points_file(execution), log) as index:
                try:
                    batch = _read(index, choice)
                except DamagedIndexError:
                    index.clear()
                    index.update()
                    batch = _read(index, choice)
                return replace(batch, at_end=complete and batch.at_end)
        return PointBatch(at_end=True)  # its job was dropped meanwhile


def _read(index: PointIndex, choice: PointChoice) -> PointBatch:
    most = min(choice.most, MAX_POINTS)
    first = 0 if choice.after is None else index.after(choice.after)
    count = len(index) - first
    if choice.after is not None:
        places: Sequence[int] = range(first, first + min(count, most))
    elif choice.keys:  # few of the points may have them, so more are looked at than are wanted
        places = [first + place for place in evenly(count, MAX_POINTS)]
    else:
        places = [first + place for place in evenly(count, most)]
    offsets = index.offsets(places)
    lines = [(offset, *index.line(offset)) for offset in offsets]
    if choice.keys:
        lines = _with_keys(lines, choice.keys)
    chosen = (lines[place] for place in evenly(len(lines), most))
    points = tuple(point for line in chosen if (point := _point(*line, choice.keys)) is not None)
    last = offsets[-1] if offsets else -1 if choice.after is None else choice.after
    return PointBatch(
        points=points,
        all=len(index),
        next_offset=last,
        at_end=choice.after is None or len(places) == count,
    )


def _with_keys(lines: list[_Line], keys: frozenset[str]) -> list[_Line]:
    """The lines that may have one of these keys; a key may be written with escapes, if it is not plain."""
    if not all(key.isascii() and key.isprintable() for key in keys):
        return lines
    wanted = tuple(dumps(key).encode() for key in keys)
    return [line for line in lines if any(key in line[2] for key in wanted)]


def _point(offset: int, time: bytes, text: bytes, keys: frozenset[str]) -> Point | None:
    if (found := parse_point(text)) is None:
        return None
    values, texts = found
    if keys:
        if keys.isdisjoint(values) and keys.isdisjoint(texts):
            return None
        kept = keys.union(STEP_KEYS)
        values = {key: value for key, value in values.items() if key in kept}
        texts = {key: value for key, value in texts.items() if key in keys}
    return Point(time=_time(time), values=values, texts=texts, offset=offset)


def _time(text: bytes) -> datetime:
    try:
        nanoseconds = parse_time(text)
    except ValueError:
        raise DamagedIndexError from None
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).replace(
        microsecond=nanoseconds % 1_000_000_000 // 1000
    )
