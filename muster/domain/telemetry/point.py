"""Points: JSON objects that user code prints, each on a line of its own, with numbers to be plotted.

    {"step": 1200, "loss": 0.41}

The form is that of Valohai's metadata: https://docs.valohai.com/hc/en-us/articles/18704203021329.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import isfinite

MAX_POINT = 16 * 1024
"""Bytes of a line that is looked at; a longer one is no point."""
MAX_POINT_KEYS = 200
"""Keys that are kept of one point, in the order in which they were printed."""
MAX_POINT_KEY = 64
"""Characters of a key; a longer one is left out."""
MAX_POINT_TEXT = 1024
"""Characters that are kept of a text under a key."""
POINTS = 1_000
"""Points of a rank that are read unless somebody wants more or fewer."""
MAX_POINTS = 50_000
"""Points of a rank that are read at the most; of more, so many are taken evenly."""

STEP_KEYS = ("step", "global_step", "iteration", "epoch")
"""Keys that count how far the code is; the first that is there is the axis of a plot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one line says."""

    time: datetime
    """When the line was printed, as its agent read it."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Finite numbers by key."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts by key; they are not plotted."""
    offset: int = 0
    """Where its line begins in the log of its execution, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPoints:
    """Points of one rank in one attempt, in the order in which they were printed."""

    rank: int
    attempt: int
    points: Sequence[Point] = ()
    all: int = 0
    """How many lines of the log so far may be points; more than `points` has where they were thinned out."""

    def followed_by(self, more: "RankPoints") -> "RankPoints":
        """These points and those that come next, of the same rank and attempt."""
        return replace(more, points=(*self.points, *more.points))

    @property
    def last(self) -> Mapping[str, float]:
        """The newest number under each key."""
        found: dict[str, float] = {}
        for point in self.points:
            found |= point.values
        return found


def parse_point(text: bytes) -> tuple[Mapping[str, float], Mapping[str, str]] | None:
    """The numbers and texts of a line; None where it is no point.

    A point is one JSON object with at least one finite number at its top level. What else it has there (lists, objects,
    true, false, null, numbers that are not finite) is left out.
    """
    if len(text) > MAX_POINT or not text.startswith(b"{") or not text.rstrip().endswith(b"}"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    values: dict[str, float] = {}
    texts: dict[str, str] = {}
    for key in list(found)[:MAX_POINT_KEYS]:
        value = found[key]
        if not key or len(key) > MAX_POINT_KEY:
            continue
        if isinstance(value, str):
            texts[key] = value[:MAX_POINT_TEXT]
        elif (number := _number(value)) is not None:
            values[key] = number
    return (values, texts) if values else None


def _number(value: object) -> float | None:
    """A finite number as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def evenly(count: int, most: int) -> Sequence[int]:
    """The places 0 to `count - 1`, or so many of them, evenly apart, with the last one and, if two are, the first.

    >>> evenly(10, 4)
    (0, 3, 6, 9)
    """
    if count <= most:
        return range(count)
    if most < 2:  # noqa: PLR2004 - of one place it is the last
        return (count - 1,) if most else ()
    return tuple(place * (count - 1) // (most - 1) for place in range(most))
