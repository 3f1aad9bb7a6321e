"""Where a reader of logs is, so that a stream that begins anew goes on where the last one broke."""

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.domain.jobs.view import LogLine


class LogPosition:
    """What of each rank was handed out.

    The position of a rank is the time of its last line and how many of its lines carry that very time, for each of its
    streams: a line of one may come after newer lines of the other.
    """

    def __init__(self) -> None:
        self._positions: dict[tuple[int, str], tuple[datetime, int]] = {}
        self._repeated: dict[tuple[int, str], int] = {}

    def start_again(self) -> None:
        """Expect all lines up to here once more, as the stream begins anew."""
        self._repeated = dict.fromkeys(self._positions, 0)

    def is_new(self, line: "LogLine") -> bool:
        """Whether the line was not handed out before; it is now."""
        source = (line.rank, line.stream)
        time, count = self._positions.get(source, (line.time, 0))
        if source in self._repeated:
            if line.time < time:
                return False
            if line.time == time and self._repeated[source] < count:
                self._repeated[source] += 1
                return False
            del self._repeated[source]
        self._positions[source] = (line.time, count + 1 if line.time == time else 1)
        return True
