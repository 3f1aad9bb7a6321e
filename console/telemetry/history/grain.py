"""Grains: how finely history is kept, for how long, and which time one file of it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from muster.domain.telemetry.sample import SAMPLE_SPAN

ENOUGH_VALUES = 4
"""A coarser grain is read where it still gives this part of the values that were asked for: one in four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grain:
    """One fineness of history."""

    name: str
    span: timedelta
    """The time of which one value tells."""
    kept: timedelta
    """How long a file is kept after its end."""
    period: str
    """How the beginning of a file's time is written, which is its name."""

    def file_name(self, at: datetime) -> str:
        """The name of the file that has a time."""
        return f"{at.astimezone(UTC):{self.period}}.db"

    def begin(self, file_name: str) -> datetime | None:
        """The beginning of the time that a file has; None: it is none of this grain."""
        try:
            found = datetime.strptime(file_name, f"{self.period}.db").replace(tzinfo=UTC)
        except ValueError:
            return None
        return found if self.file_name(found) == file_name else None

    def end(self, begin: datetime) -> datetime:
        """The end of the time of the file that begins then."""
        after = begin + _LONGER_THAN[self.period]
        return datetime.strptime(f"{after:{self.period}}", self.period).replace(tzinfo=UTC)


_LONGER_THAN = {"%Y-%m-%dT%H": timedelta(hours=1), "%Y-%m-%d": timedelta(days=1), "%Y-%m": timedelta(days=31)}
"""A span that leads from the beginning of a period into the next one, and not past it."""

TEN_SECONDS = Grain(name="10s", span=SAMPLE_SPAN, kept=timedelta(hours=24), period="%Y-%m-%dT%H")
FIVE_MINUTES = Grain(name="5min", span=timedelta(minutes=5), kept=timedelta(days=30), period="%Y-%m-%d")
ONE_HOUR = Grain(name="1h", span=timedelta(hours=1), kept=timedelta(days=400), period="%Y-%m")
GRAINS: Sequence[Grain] = (TEN_SECONDS, FIVE_MINUTES, ONE_HOUR)
"""All of them, the finest first; each but the first is made of the one before."""


def grain_for(span: timedelta, most: int) -> Grain:
    """The coarsest grain that has a good part of `most` values in such a span; the finest, where none has."""
    fitting = [grain for grain in GRAINS if grain.span * most <= span * ENOUGH_VALUES]
    return fitting[-1] if fitting else GRAINS[0]


def width_for(span: timedelta, most: int, grain: Grain) -> timedelta:
    """The time of which one value tells so that there are at most so many; whole spans of the grain."""
    return grain.span * max(1, -(-span // (grain.span * most)))
