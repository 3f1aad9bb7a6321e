"""Points that cannot be are refused."""

from datetime import UTC, datetime

import pytest

from muster import wire
from muster.domain.telemetry.point import MAX_POINT_KEYS
from muster.rpc.v1 import jobs_pb2 as pb

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def message(**values: float) -> pb.RankPoints:
    point = pb.Point(values=values)
    point.time.FromDatetime(AT)
    return pb.RankPoints(rank=0, attempt=1, points=[point])


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (message(loss=float("nan")), "Point.values"),
        (message(loss=float("inf")), "Point.values"),
        (message(**{f"k{number}": 1.0 for number in range(MAX_POINT_KEYS + 1)}), "201 keys; 200 are the most"),
        (pb.RankPoints(rank=0, attempt=1, points=[pb.Point(values={"a": 1})]), "Point"),
        (pb.RankPoints(rank=0), "RankPoints.attempt"),
    ],
)
def test_what_cannot_be_is_refused(said: pb.RankPoints, sentence: str) -> None:
    with pytest.raises(wire.WireError, match=sentence):
        wire.rank_points_from_wire(said)
