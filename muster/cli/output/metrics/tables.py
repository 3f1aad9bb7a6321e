"""Points as tables, lines and CSV."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.cli.output.documents import csv_text
from muster.cli.output.metrics.chart import number_text, sparkline
from muster.cli.output.metrics.series import FoundPoints, in_order, keys_of, label_of, ranks_in, series_of
from muster.cli.output.units import time_text
from muster.documents import document
from muster.domain.telemetry.point import Point, RankPoints

_TREND = 24
"""Characters of a sparkline."""

HEADERS = ("KEY", "OF", ">LAST", ">LEAST", ">MOST", "TREND")


def rows_of(found: FoundPoints, axis: str) -> Iterator[Sequence[str]]:
    """What the table `HEADERS` says of each key of each rank of each job."""
    for key in keys_of(ranks_in(found), axis):
        for series in series_of(found, key, axis):
            values = series.values
            numbers = (values[-1], min(values), max(values))
            yield (key, series.label, *map(number_text, numbers), sparkline(values, _TREND))
    yield from _text_rows(found)


def _text_rows(found: FoundPoints) -> Iterator[Sequence[str]]:
    """Texts of the last point of each rank; they have no trend."""
    for job, ranks in found.items():
        for rank in ranks:
            if rank.points:
                label = label_of(found, job, rank)
                for key, text in sorted(rank.points[-1].texts.items()):
                    yield (key, label, text, "", "", "")


def point_line(rank: int, point: Point) -> str:
    """A point as a line for people."""
    numbers = (f"{key}={number_text(point.values[key])}" for key in in_order(point.values))
    texts = (f"{key}={point.texts[key]}" for key in in_order(point.texts))
    return f"{time_text(point.time)}  rank {rank}  {' '.join((*numbers, *texts))}"


def csv_of(found: FoundPoints) -> str:
    """All points, one a row, with a column for each key; empty where a point has none of it."""
    said = [(job, rank, point) for job, ranks in found.items() for rank in ranks for point in rank.points]
    keys = in_order({key for _, _, point in said for key in (*point.values, *point.texts)})
    return csv_text(
        ("job", "attempt", "rank", "time", *keys),
        ((job, rank.attempt, rank.rank, document(point.time), *_values(point, keys)) for job, rank, point in said),
    )


def _values(point: Point, keys: Sequence[str]) -> Iterator[float | str]:
    """What a point has under each of these keys; empty: nothing."""
    return (point.values.get(key, point.texts.get(key, "")) for key in keys)


def documents_of(job: str, ranks: Iterable[RankPoints]) -> Iterator[Mapping[str, object]]:
    """Points of a job as data, one document for each rank."""
    for rank in ranks:
        yield {"job": job, "attempt": rank.attempt, "rank": rank.rank, "all": rank.all, "points": rank.points}
