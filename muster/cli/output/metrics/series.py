"""Series: the numbers of one key of one rank, in the order in which they were printed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from muster.domain.telemetry.point import STEP_KEYS, Point, RankPoints

FoundPoints: TypeAlias = Mapping[str, Sequence[RankPoints]]
"""Points of each rank, by what their jobs are called beside each other."""

TIME_AXIS = "seconds"
"""What is counted where no point says a step: seconds since the first point of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSeries:
    """Numbers of one key."""

    label: str
    """The execution that printed them: `rank 0`, or `train rank 0` beside those of other jobs."""
    places: Sequence[tuple[float, float]]
    """Step, or seconds since the beginning, and the number there."""

    @property
    def values(self) -> Sequence[float]:
        """The numbers alone."""
        return [value for _, value in self.places]


def ranks_in(found: FoundPoints) -> Sequence[RankPoints]:
    """The ranks of all jobs."""
    return [rank for ranks in found.values() for rank in ranks]


def label_of(found: FoundPoints, job: str, rank: RankPoints) -> str:
    """What a rank is called among these: `rank 0`, or `train rank 0` beside those of other jobs."""
    return f"rank {rank.rank}" if len(found) == 1 else f"{job} rank {rank.rank}"


def keys_of(ranks: Iterable[RankPoints], axis: str) -> Sequence[str]:
    """The keys under which there are numbers, but for the axis, by name."""
    return sorted({key for rank in ranks for point in rank.points for key in point.values} - {axis})


def in_order(keys: Iterable[str]) -> Sequence[str]:
    """Keys by name, those that count steps before all others."""
    return sorted(keys, key=lambda key: (key not in STEP_KEYS, key))


def axis_of(ranks: Iterable[RankPoints]) -> str:
    """What counts the steps in all these points, or `seconds`."""
    counts = [sum(key in point.values for rank in ranks for point in rank.points) for key in STEP_KEYS]
    most = max(counts)
    return STEP_KEYS[counts.index(most)] if most else TIME_AXIS


def series_of(found: FoundPoints, key: str, axis: str) -> Sequence[MetricSeries]:
    """The numbers of a key, of each rank of each job that has any; `found` names the jobs."""
    start = min((point.time for rank in ranks_in(found) for point in rank.points), default=None)
    series: list[MetricSeries] = []
    for job, ranks in found.items():
        for rank in ranks:
            places = [(at, point.values[key]) for point, at in _placed(rank.points, axis, start) if key in point.values]
            if places:
                series.append(MetricSeries(label=label_of(found, job, rank), places=places))
    return series


def smoothed(series: MetricSeries, weight: float) -> MetricSeries:
    """The exponential moving average, in which what came before has this weight; 0 changes nothing.

    Its beginning is not drawn towards zero: each average is divided by the sum of its weights.
    """
    average, total = 0.0, 0.0
    places = []
    for at, value in series.places:
        average, total = weight * average + (1 - weight) * value, weight * total + (1 - weight)
        places.append((at, average / total))
    return replace(series, places=places)


def _placed(points: Sequence[Point], axis: str, start: datetime | None) -> Iterable[tuple[Point, float]]:
    """Points with their places on the axis; one that does not say its step has that of the point before."""
    if axis == TIME_AXIS:
        assert start is not None or not points
        yield from ((point, (point.time - start).total_seconds()) for point in points if start is not None)
        return
    at = 0.0
    for point in points:
        at = point.values.get(axis, at)
        yield point, at
