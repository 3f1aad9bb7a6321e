"""What attempts have held, and for how long; it outlives their jobs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

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
        return SpentGroup(attempts=1, evicted=int(self.outcome == EVICTED), held=Amounts(*parts), lost=lost, **said)

    def _by(self, at: datetime, amount: int) -> int:
        """How much of an amount was held until then, as if it had been held evenly."""
        if at >= self.ended_at:
            return amount
        if at <= self.placed_at:
            return 0
        return amount * ((at - self.placed_at) // _TICK) // ((self.ended_at - self.placed_at) // _TICK)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentSums:
    """What is stored of a span of time."""

    groups: tuple[SpentGroup, ...] = ()
    """Attempts that lie in it, those that are alike together."""
    edges: tuple[Spent, ...] = ()
    """Attempts of which only a part lies in it."""
    kept_since: datetime | None = None
    """What ended before was dropped; None: nothing was."""
