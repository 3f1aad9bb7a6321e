"""Lines of the journal that others cause: so many are written, in all and by address; the others are counted and told.

A record with the field `peer` is caused by that peer, whichever module logs it. What gRPC and asyncio log may be caused
by anybody, and comes with tracebacks, so each of the two counts like one address.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from coordinator.clock import boot_time
from coordinator.trust.places import place_of
from muster.daemon.rates import RATED_KEYS, Buckets, Rate

log = logging.getLogger(__name__)

LINES_AT_ONCE = 100
LINES_PER_MINUTE = 12
"""Lines with one sentence, whoever causes them."""
LINES_OF_ONE_AT_ONCE = 20
LINES_OF_ONE_PER_MINUTE = 2
"""Lines with one sentence that one address causes."""
SUMMARY_EACH = 60.0
"""Seconds from one line about lines that were left out to the next."""
LIBRARIES = frozenset({"grpc", "asyncio"})
"""Loggers that tell of calls which went wrong, without the peer."""

_ALL = Rate(burst=LINES_AT_ONCE, per_second=LINES_PER_MINUTE / 60)
_ONE = Rate(burst=LINES_OF_ONE_AT_ONCE, per_second=LINES_OF_ONE_PER_MINUTE / 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Lines with one sentence that were not written."""

    sentence: str
    lines: int
    addresses: int
    """How many caused them; a library names none."""


@dataclass(slots=True)
class _Count:
    lines: int = 0
    places: set[str] = field(default_factory=set)


class JournalPace:
    """Decides which lines are written; pure, with the time passed in."""

    def __init__(self, in_all: Rate = _ALL, of_one: Rate = _ONE) -> None:
        self._in_all = Buckets[str](in_all)
        self._of_one = Buckets[tuple[str, str]](of_one)
        self._left_out: dict[str, _Count] = {}

    def writes(self, sentence: str, place: str, now: float) -> bool:
        """Whether a line is written that somebody at this place causes; an empty place is that of a library."""
        if not self._of_one.take((sentence, place), now):
            if not self._in_all.take(sentence, now):
                return True
            self._of_one.give_back((sentence, place))
        count = self._left_out.setdefault(sentence, _Count())
        count.lines += 1
        if place and len(count.places) < RATED_KEYS:
            count.places.add(place)
        return False

    def left_out(self) -> tuple[LeftOut, ...]:
        """Lines that were left out since this was last asked."""
        counts, self._left_out = self._left_out, {}
        return tuple(
            LeftOut(sentence=sentence, lines=count.lines, addresses=len(count.places))
            for sentence, count in counts.items()
        )


class PacedLines(logging.Filter):
    """Lets through what the pace allows, and all that nobody else causes; for the handler that writes the journal."""

    def __init__(self, pace: JournalPace | None = None, clock: Callable[[], float] = boot_time) -> None:
        super().__init__()
        self._pace = pace or JournalPace()
        self._clock = clock
        self._lock = Lock()
        """Threads of gRPC log, too."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        peer = getattr(record, "peer", None)
        library = record.name.partition(".")[0]
        if peer is None and library not in LIBRARIES:
            return True
        sentence, place = (library, "") if peer is None else (str(record.msg), place_of(str(peer)))
        with self._lock:
            return self._pace.writes(sentence, place, self._clock())

    def tell(self) -> None:
        """Log how many lines were left out since the last time."""
        with self._lock:
            left_out = self._pace.left_out()
        for each in left_out:
            about = {"like": each.sentence, "lines": each.lines, "addresses": each.addresses}
            log.warning("more lines like this were left out", extra=about)

    async def tell_seldom(self, pause: float = SUMMARY_EACH) -> None:
        """Tell once in a while, until cancelled; what is left then is for `tell`."""
        while True:
            await asyncio.sleep(pause)
            self.tell()
