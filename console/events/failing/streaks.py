"""Streaks: tries of a subscription that have failed in a row, and when that suspends it; pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from muster.domain.notifications.subscription import FAILING_DELIVERIES

SUSPENDED_AFTER_TRIES = 100
"""Tries in a row that have failed after which a subscription is suspended, if they also lasted for long enough."""
SUSPENDED_AFTER = timedelta(days=5)
"""The time for which its tries have failed when a subscription is suspended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Tries of one subscription that have failed in a row."""

    failures: int
    since: float
    """When the first of them failed, in seconds of the wall clock."""
    told: str
    """What the target has said last, or what went wrong."""
    suspended: bool = False
    """Whether nothing more is sent until somebody sees to it."""

    @property
    def failing(self) -> bool:
        """Whether the target counts as failing."""
        return self.failures >= FAILING_DELIVERIES


class DeliveryStreaks:
    """The streaks of all subscriptions of a console."""

    def __init__(self) -> None:
        self._streaks: dict[str, Streak] = {}
        self.tries: Counter[tuple[str, bool]] = Counter()
        """How often targets of each kind were tried, and whether they took what they were sent."""

    def load(self, known: Mapping[str, Streak]) -> None:
        """Begin with these; none of them is suspended before its next try."""
        self._streaks = {name: replace(each, suspended=False) for name, each in known.items()}

    def note(self, subscription: str, at: float, told: str, *, taken: bool, suspends: bool) -> Streak | None:
        """Take in how a try has ended; the streak after it, or None. `suspends`: whether it can become suspended."""
        if taken:
            self.forget(subscription)
            return None
        before = self._streaks.get(subscription)
        failures, since = (1, at) if before is None else (before.failures + 1, before.since)
        long_enough = failures >= SUSPENDED_AFTER_TRIES and at - since >= SUSPENDED_AFTER.total_seconds()
        now = Streak(failures=failures, since=since, told=told, suspended=suspends and long_enough)
        self._streaks[subscription] = now
        return now

    def forget(self, subscription: str) -> None:
        """Forget that tries have failed, as somebody has seen to it."""
        self._streaks.pop(subscription, None)

    def is_suspended(self, subscription: str) -> bool:
        """Whether nothing is sent for a subscription."""
        streak = self._streaks.get(subscription)
        return streak is not None and streak.suspended

    @property
    def current(self) -> Mapping[str, Streak]:
        """All streaks by the names of their subscriptions."""
        return dict(self._streaks)
