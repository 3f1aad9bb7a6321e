"""The synchronous form of `muster.client.services.metrics`, made from it by `make sync`; change that one."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from muster.client.blocking.loop_thread import LoopThread
from muster.client.blocking.stream import SyncStream
from muster.client.services.metrics import MetricsClient
from muster.domain.telemetry.point import POINTS, RankPoints

if TYPE_CHECKING:
    from muster.domain.jobs.view import JobView


class SyncMetricsClient:
    """Numbers that jobs print, reached as `client.metrics`."""

    def __init__(self, own: MetricsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def read(
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

        >>> for rank in client.metrics.read("train", keys=["loss"]):
        ...     print(rank.rank, rank.last.get("loss"))
        """
        return self._loop.run(self._own.read(job, ranks=ranks, keys=keys, most=most, attempt=attempt))

    def follow(
        self,
        job: "str | JobView",
        *,
        ranks: Collection[int] = (),
        keys: Collection[str] = (),
        most: int = POINTS,
        attempt: int | None = None,
    ) -> "SyncStream[RankPoints]":
        """The points there are, as `read` gives them, then new ones as they are printed, until all logs are complete.

        A rank comes again and again, each time with points that are new. A broken connection is taken up again without
        losing or repeating a point.

        >>> for new in client.metrics.follow("train", keys=["loss"]):
        ...     for point in new.points:
        ...         print(new.rank, point.values)
        """
        return self._loop.stream(self._own.follow(job, ranks=ranks, keys=keys, most=most, attempt=attempt))
