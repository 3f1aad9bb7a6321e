"""Points as tables, lines and CSV."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO

from muster.cli.output.documents import document
from muster.cli.output.metrics.chart import number_text, sparkline
from muster.cli.output.metrics.series import in_order, keys_of, series_of
from muster.cli.output.units import time_text
from muster.domain.telemetry.point import Point, RankPoints

_TREND = 24
"""Characters of a sparkline."""

HEADERS = ("KEY", "OF", ">LAST", ">LEAST", ">MOST", "TREND")


def rows_of(found: Mapping[str, Sequence[RankPoints]], axis: str) -> Iterator[Sequence[str]]:
    """What the table `HEADERS` says of each key of each rank of each job."""
    ranks = [rank for each in found.values() for rank in each]
    for key in keys_of(ranks, axis):
        for series in series_of(found, key, axis):
            values = series.values
            numbers = (values[-1], min(values), max(values))
            yield (key, series.label, *map(number_text, numbers), sparkline(values, _TREND))
    yield from _text_rows(found)


def _text_rows(found: Mapping[str, Sequence[RankPoints]]) -> Iterator[Sequence[str]]:
    """Texts of the last point of each rank; they have no trend."""
    for job, ranks in found.items():
        for rank in ranks:
            if rank.points:
                label = f"rank {rank.rank}" if len(found) == 1 else f"{job} rank {rank.rank}"
                for key, text in sorted(rank.points[-1].texts.items()):
                    yield (key, label, text, "", "", "")


def point_line(rank: int, point: Point) -> str:
    """A point as a line for people."""
    numbers = (f"{key}={number_text(point.values[key])}" for key in in_order(point.values))
    texts = (f"{key}={point.texts[key]}" for key in in_order(point.texts))
    return f"{time_text(point.time)}  rank {rank}  {' '.join((*numbers, *texts))}"


def csv_of(found: Mapping[str, Sequence[RankPoints]]) -> str:
    """All points, one a row, with a column for each key; empty where a point has none of it."""
    ranks = [rank for each in found.values() for rank in each]
    keys = in_order({key for rank in ranks for point in rank.points for key in (*point.values, *point.texts)})
    into = StringIO()
    rows = csv.writer(into, lineterminator="\n")
    rows.writerow(("job", "attempt", "rank", "time", *keys))
    for job, of_job in found.items():
        for rank in of_job:
            for point in rank.points:
                said = {**point.values, **point.texts}
                rows.writerow(
                    (job, rank.attempt, rank.rank, document(point.time), *(said.get(key, "") for key in keys))
                )
    return into.getvalue()


def documents_of(job: str, ranks: Iterable[RankPoints]) -> Iterator[Mapping[str, object]]:
    """Points of a job as data, one document for each rank."""
    for rank in ranks:
        yield {"job": job, "attempt": rank.attempt, "rank": rank.rank, "all": rank.all, "points": rank.points}
