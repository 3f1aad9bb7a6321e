"""What attempts have held, in memory."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import count

from coordinator.core.records import KeepSpent, SpentChange
from coordinator.core.spent import Spent, SpentGroup, SpentSums, SpentWaits, SpentWish, sum_known
from muster.domain.ids import JobId


class MemoryAccounts:
    """Keeps what attempts have held for as long as it lives."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._spent: dict[tuple[JobId, int], tuple[int, Spent]] = {}
        """Attempts in the order of their numbers."""

    def apply(self, changes: Iterable[SpentChange]) -> None:
        """Store what attempts have held, and forget the oldest."""
        for change in changes:
            if isinstance(change, KeepSpent):
                key = (change.spent.job, change.spent.attempt)
                if key not in self._spent:
                    self._spent[key] = (next(self._numbers), change.spent)
            else:
                for key in list(self._spent)[: max(0, len(self._spent) - change.keep)]:
                    del self._spent[key]

    def sums(self, wish: SpentWish) -> SpentSums:
        """What is kept of a span of time."""
        groups: dict[tuple[str, ...], SpentGroup] = {}
        edges: list[Spent] = []
        for _, spent in self._spent.values():
            if not wish.takes(spent):
                continue
            if spent.ended_at > wish.until or (wish.since is not None and spent.placed_at < wish.since):
                edges.append(spent)
                continue
            part = spent.within(wish.since, wish.until, wish.words)
            key = tuple(getattr(spent, word) for word in wish.words)
            groups[key] = _together(groups[key], part) if key in groups else part
        first = next(iter(self._spent.values()), None)
        return SpentSums(
            groups=tuple(groups.values())[: wish.most],
            edges=tuple(edges),
            kept_since=None if first is None or first[0] == 1 else first[1].ended_at,
        )

    def waits(self, wish: SpentWish, seen_at: datetime) -> tuple[SpentWaits, ...]:
        """How long attempts were in the queue, by group."""
        groups: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for _, spent in self._spent.values():
            if spent.ended_at <= seen_at and spent.waited is not None and wish.takes_placement(spent):
                groups[tuple(getattr(spent, word) for word in wish.words)].append(spent.waited)
        return tuple(
            SpentWaits(waits=tuple(waits), **dict(zip(wish.words, key, strict=True)))
            for key, waits in list(groups.items())[: wish.most]
        )


def _together(one: SpentGroup, other: SpentGroup) -> SpentGroup:
    return replace(
        one,
        attempts=one.attempts + other.attempts,
        evicted=one.evicted + other.evicted,
        held=one.held.plus(other.held),
        lost=one.lost + other.lost,
        borrowed=one.borrowed + other.borrowed,
        busy=sum_known(one.busy, other.busy),
    )
