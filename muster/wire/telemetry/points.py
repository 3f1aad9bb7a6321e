"""Values of jobs.proto: what user code tells of itself."""

from math import isfinite

from muster.domain.telemetry.point import MAX_POINT_KEYS, Point, RankPoints
from muster.rpc.v1 import jobs_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError


def rank_points_to_wire(points: RankPoints) -> pb.RankPoints:
    """Points of one rank."""
    return pb.RankPoints(
        rank=points.rank, attempt=points.attempt, points=map(_point_to_wire, points.points), all=points.all
    )


def rank_points_from_wire(message: pb.RankPoints) -> RankPoints:
    """Points of one rank; raises WireError."""
    return RankPoints(
        rank=checks.between(message.rank, 0, checks.MAX_SIZE - 1, "RankPoints.rank"),
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "RankPoints.attempt"),
        points=tuple(_point_from_wire(point) for point in message.points),
        all=checks.between(message.all, 0, checks.MAX_BYTES, "RankPoints.all"),
    )


def _point_to_wire(point: Point) -> pb.Point:
    return pb.Point(time=checks.timestamp(point.time), values=point.values, texts=point.texts, offset=point.offset)


def _point_from_wire(message: pb.Point) -> Point:
    checks.require(message, "time")
    values, texts = dict(message.values), dict(message.texts)
    if len(values) + len(texts) > MAX_POINT_KEYS:
        raise WireError("Point.values", f"has {len(values) + len(texts)} keys; {MAX_POINT_KEYS} are the most")
    if not all(map(isfinite, values.values())):
        raise WireError("Point.values", "has numbers that are not finite")
    return Point(
        time=checks.moment(message.time, "Point.time"),
        values=values,
        texts=texts,
        offset=checks.between(message.offset, 0, checks.MAX_BYTES, "Point.offset"),
    )
