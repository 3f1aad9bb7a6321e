"""The SDK for what user code tells of itself: numbers that it prints, to be plotted."""

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from muster import wire
from muster.client.calls import Calls
from muster.client.streams.resumed import resumed
from muster.domain.telemetry.point import POINTS, RankPoints
from muster.rpc.v1 import jobs_pb2 as pb
from muster.rpc.v1.jobs_pb2_grpc import JobServiceStub

if TYPE_CHECKING:
    from muster.domain.jobs.view import JobView


class MetricsClient:
    """Numbers that jobs print, reached as `client.metrics`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of JobService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(JobServiceStub)

    async def read(
        self,
        job: "str | JobView",
        *,
        ranks: Collection[int] = (),
        keys: Collection[str] = (),
        most: int = POINTS,
        attempt: int | None = None,
    ) -> tuple[RankPoints, ...]:
        """The points that the ranks of a job have printed so far, one entry for each rank.

        `keys` leaves out points that have none of them. Of more than `most` points of a rank (50,000 can be asked for)
        so many are taken, evenly, and always the last one.

        >>> for rank in await client.metrics.read("train", keys=["loss"]):
        ...     print(rank.rank, rank.last.get("loss"))
        """
        request = _request(job, ranks=ranks, keys=keys, most=most, attempt=attempt)
        found: dict[int, RankPoints] = {}
        async with aclosing(self._calls.stream(self._stub.Points, request)) as messages:
            async for message in messages:
                piece = wire.rank_points_from_wire(message)
                before = found.get(piece.rank)
                found[piece.rank] = piece if before is None else before.followed_by(piece)
        return tuple(found[rank] for rank in sorted(found))

    async def follow(
        self,
        job: "str | JobView",
        *,
        ranks: Collection[int] = (),
        keys: Collection[str] = (),
        most: int = POINTS,
        attempt: int | None = None,
    ) -> AsyncGenerator[RankPoints, None]:
        """The points there are, as `read` gives them, then new ones as they are printed, until all logs are complete.

        A rank comes again and again, each time with points that are new. A broken connection is taken up again without
        losing or repeating a point.

        >>> async for new in client.metrics.follow("train", keys=["loss"]):
        ...     for point in new.points:
        ...         print(new.rank, point.values)
        """
        request = _request(job, ranks=ranks, keys=keys, most=most, attempt=attempt)
        request.follow = True
        newest = 0
        async with aclosing(resumed(self._calls, self._stub.Points, request)) as messages:
            async for message in messages:
                piece = wire.rank_points_from_wire(message)
                if piece.attempt > newest:
                    newest = piece.attempt
                    request.after.clear()
                request.after[piece.rank] = max((each.offset for each in piece.points), default=-1)
                yield piece


def _request(
    job: "str | JobView", *, ranks: Collection[int], keys: Collection[str], most: int, attempt: int | None
) -> pb.PointsRequest:
    return pb.PointsRequest(
        job=job if isinstance(job, str) else job.id,
        ranks=sorted(ranks),
        keys=sorted(keys),
        most=most,
        attempt=attempt or 0,
    )
