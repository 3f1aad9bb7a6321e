"""What is kept of a job that is followed: enough for a viewer who comes late or reads slowly, and no more; pure."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from console.mirror.rows import EncodedJson, encoded, joined
from console.watched.wish import WatchWish
from muster.domain.jobs.view import JobView, LogLine
from muster.domain.telemetry.point import STEP_KEYS, Point, RankPoints

LOG_LINES_KEPT = 2_000
"""Newest log lines of a job that are kept for its viewers."""
LOG_BYTES_KEPT = 1 << 20
"""Bytes of them."""
POINTS_KEPT = 10_000
"""Newest points of a job under one key that are kept for its viewers, all ranks together."""

Told_contra = TypeVar("Told_contra", contravariant=True)
"""What the coordinator tells next."""


class KeptNews(Protocol[Told_contra]):
    """What was told of one wish, each thing with a number that grows; a viewer is the number that it has read."""

    newest: int
    """The number of the newest thing; 0: nothing was told."""

    def take(self, told: Told_contra) -> None:
        """Take in what was told."""

    def begin_anew(self) -> None:
        """Forget everything, as it will be told again."""

    def since(self, known: int) -> EncodedJson | None:
        """What a viewer is told who has read up to a number, -1: nothing yet; None: nothing is new."""


class KeptJob:
    """A job as it is; of states in between nobody hears who did not look in time."""

    def __init__(self, wish: WatchWish) -> None:
        self._wish = wish
        self._view: JobView | None = None
        self._data: EncodedJson | None = None
        self.newest = 0

    def take(self, told: JobView) -> None:
        """Take in the job as it is now."""
        self.newest += 1
        self._view, self._data = told, None

    def begin_anew(self) -> None:
        """Keep the job as it was, until it is told again."""

    def since(self, known: int) -> EncodedJson | None:
        """The whole view of the job, made once for all viewers."""
        if self._view is None or known >= self.newest:
            return None
        if self._data is None:
            self._data = _named(job=encoded(self._view))
        return self._data


Kept = TypeVar("Kept")


class _Numbered(NamedTuple, Generic[Kept]):
    number: int
    thing: Kept


class KeptLines:
    """The newest lines of the logs of a job."""

    def __init__(self, wish: WatchWish, most: int = LOG_LINES_KEPT, most_bytes: int = LOG_BYTES_KEPT) -> None:
        self._wish = wish
        self._most = most
        self._most_bytes = most_bytes
        self._lines: deque[_Numbered[EncodedJson]] = deque()
        self._bytes = 0
        self._anew_from = 0
        self.newest = 0

    def take(self, told: LogLine) -> None:
        """Take in the next line."""
        self.newest += 1
        line = encoded(told)
        self._lines.append(_Numbered(self.newest, line))
        self._bytes += len(line)
        while len(self._lines) > self._most or (self._bytes > self._most_bytes and len(self._lines) > 1):
            self._bytes -= len(self._lines.popleft().thing)

    def begin_anew(self) -> None:
        """Forget all lines."""
        self.newest += 1
        self._anew_from, self._bytes = self.newest, 0
        self._lines.clear()

    def since(self, known: int) -> EncodedJson | None:
        """The lines behind a number, and how many are missing in between."""
        if known >= self.newest:
            return None
        anew = known < self._anew_from or known < 0
        lines = [each for each in self._lines if each.number > known]
        told: dict[str, object] = {"job": self._wish.job}
        if anew:
            told["anew"] = True
        elif missed := (lines[0].number if lines else self.newest + 1) - known - 1:
            told["missed"] = missed
        return _named(logs=encoded_with(told, lines=joined([each.thing for each in lines])))


class _KeptPoint(NamedTuple):
    rank: int
    attempt: int
    data: EncodedJson


class KeptPoints:
    """The newest points of a job under one key."""

    def __init__(self, wish: WatchWish, most: int = POINTS_KEPT) -> None:
        self._wish = wish
        self._points: deque[_Numbered[_KeptPoint]] = deque(maxlen=most)
        self._anew_from = 0
        self._attempt = 0
        self.newest = 0

    def take(self, told: RankPoints) -> None:
        """Take in the next points of a rank; those of attempts before go."""
        if told.attempt > self._attempt:
            self._attempt = told.attempt
            self._points.clear()
        for point in told.points:
            if self._wish.key in point.values:
                self.newest += 1
                self._points.append(_Numbered(self.newest, _KeptPoint(told.rank, told.attempt, self._cut(point))))

    def begin_anew(self) -> None:
        """Forget all points."""
        self.newest += 1
        self._anew_from = self.newest
        self._points.clear()

    def since(self, known: int) -> EncodedJson | None:
        """The points behind a number, a list for each rank."""
        if known >= self.newest:
            return None
        told: dict[str, object] = {"job": self._wish.job, "key": self._wish.key}
        if known < self._anew_from or known < 0:
            told["anew"] = True
        ranks: dict[tuple[int, int], list[bytes]] = {}
        for number, (rank, attempt, data) in self._points:
            if number > known:
                ranks.setdefault((attempt, rank), []).append(data)
        pieces = [
            encoded_with({"rank": rank, "attempt": attempt}, points=joined(points))
            for (attempt, rank), points in sorted(ranks.items())
        ]
        return _named(points=encoded_with(told, ranks=joined(pieces)))

    def _cut(self, point: Point) -> EncodedJson:
        """A point with its number under the key, and those that say how far the code is."""
        keys = (self._wish.key, *STEP_KEYS)
        values = {key: point.values[key] for key in keys if key in point.values}
        return encoded({"time": point.time, "values": values})


def encoded_with(told: Mapping[str, object], **more: bytes) -> EncodedJson:
    """An object as JSON, with values behind it that are JSON already."""
    pairs: Iterator[bytes] = (b'"' + name.encode() + b'":' + value for name, value in more.items())
    head = encoded(told)[:-1]
    return EncodedJson(head + (b"," if told else b"") + b",".join(pairs) + b"}")


def _named(**value: bytes) -> EncodedJson:
    return encoded_with({}, **value)
