"""What attempts have held, and for how long; it outlives their jobs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice

from muster.domain.fleet.quota import Amounts
from muster.domain.ids import JobId

SPENT_KEPT = 500_000
"""Newest attempts whose usage is stored."""
EVICTED = "preempted"
"""How an attempt ended that made room for another job."""
SPENT_WORDS = ("project", "owner", "pool", "job_class", "job", "name")
"""All that tells groups apart."""
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentGroup:
    """What several attempts have held in a span of time; words are empty that were not asked for."""

    project: str = ""
    owner: str = ""
    pool: str = ""
    job_class: str = ""
    job: str = ""
    name: str = ""
    attempts: int
    evicted: int
    held: Amounts
    """Amounts times seconds."""
    lost: int
    """The part of the GPUs that was in vain."""
    borrowed: int = 0
    """The part of the GPUs that was above the quota of the project."""
    busy: int | None = None
    """The part of the GPUs in which something ran on them, as far as they told; None: none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one attempt has held from its placement until its end was confirmed."""

    job: JobId
    attempt: int
    name: str
    project: str
    owner: str
    pool: str
    job_class: str
    outcome: str
    """`succeeded`, `stopped`, `running`, or the kind of its failure."""
    held: Amounts
    """Amounts times seconds, of all its executions together."""
    lost: int
    """The part of the GPUs that was held after its last checkpoint, if it did not end well."""
    borrowed: int = 0
    """The part of the GPUs that was above the quota of its project."""
    busy: int | None = None
    """The part of the GPUs in which something ran on them; None: they did not tell."""
    waited: int | None = None
    """Milliseconds for which it was in the queue; None: it is not known."""
    placed_at: datetime
    ended_at: datetime
    """When its last execution held nothing any more."""

    def within(self, since: datetime | None, until: datetime, words: Iterable[str] = SPENT_WORDS) -> SpentGroup:
        """The part of it that lies in a span of time; parts of spans that follow each other add up to the whole."""
        begin = self.placed_at if since is None else since
        parts = (self._by(until, amount) - self._by(begin, amount) for amount in self.held)
        good = self.held.gpus - self.lost
        lost = max(0, self._by(until, self.held.gpus) - good) - max(0, self._by(begin, self.held.gpus) - good)
        said: dict[str, str] = {word: getattr(self, word) for word in words}
        borrowed = self._by(until, self.borrowed) - self._by(begin, self.borrowed)
        busy = None if self.busy is None else self._by(until, self.busy) - self._by(begin, self.busy)
        evicted = int(self.outcome == EVICTED)
        return SpentGroup(
            attempts=1, evicted=evicted, held=Amounts(*parts), lost=lost, borrowed=borrowed, busy=busy, **said
        )

    def _by(self, at: datetime, amount: int) -> int:
        """How much of an amount was held until then, as if it had been held evenly."""
        if at >= self.ended_at:
            return amount
        if at <= self.placed_at:
            return 0
        return amount * ((at - self.placed_at) // _TICK) // ((self.ended_at - self.placed_at) // _TICK)


def sum_known(one: int | None, other: int | None) -> int | None:
    """Both together, as far as they are known; None: neither is."""
    if one is None or other is None:
        return one if other is None else other
    return one + other


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentWish:
    """What is to be summed up."""

    since: datetime | None
    until: datetime
    words: tuple[str, ...]
    """What tells groups apart: names of fields of a group."""
    projects: frozenset[str] | None = None
    """None: all of them."""
    pool: str = ""
    """Empty: all of them."""
    most: int
    """Groups that are given at most."""

    def takes(self, spent: Spent) -> bool:
        """Whether some of what an attempt has held counts."""
        return (
            spent.placed_at < self.until
            and (self.since is None or spent.ended_at > self.since)
            and (self.projects is None or spent.project in self.projects)
            and (not self.pool or spent.pool == self.pool)
        )

    def takes_placement(self, spent: Spent) -> bool:
        """Whether an attempt counts by the time of its placement."""
        return self.takes(spent) and (self.since is None or spent.placed_at >= self.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentSums:
    """What is stored of a span of time."""

    groups: tuple[SpentGroup, ...] = ()
    """Attempts that lie in it, those that are alike together."""
    edges: tuple[Spent, ...] = ()
    """Attempts of which only a part lies in it."""
    kept_since: datetime | None = None
    """What ended before was dropped; None: nothing was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentWaits:
    """How long the attempts of a group were in the queue; words are empty that were not asked for."""

    project: str = ""
    owner: str = ""
    pool: str = ""
    job_class: str = ""
    job: str = ""
    name: str = ""
    waits: tuple[int, ...]
    """Milliseconds, in no order."""


MEDIAN, MOST = 50, 95
"""Percents of the attempts of which the longest wait is told."""
_SORTED_AT_ONCE = 20_000
"""Waits that are sorted in one go: nothing else of the coordinator goes on meanwhile."""


def longest_waits(waits: Sequence[int]) -> tuple[int, int]:
    """What half of at least one wait, and 95 % of them, do not exceed."""
    sorted_parts = (sorted(waits[first : first + _SORTED_AT_ONCE]) for first in range(0, len(waits), _SORTED_AT_ONCE))
    places = [-(-len(waits) * percent // 100) - 1 for percent in (MEDIAN, MOST)]
    ranked = list(islice(merge(*sorted_parts), places[-1] + 1))
    return ranked[places[0]], ranked[places[1]]
