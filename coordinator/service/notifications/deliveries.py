"""The book of deliveries: the last tries of each subscription, as consoles report them, and tests under way."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from muster.domain.notifications.subscription import (
    FAILING_DELIVERIES,
    DeliveryTry,
    ReportedDelivery,
    Subscription,
    SubscriptionTest,
)

TRIES_KEPT = 50
"""Newest tries of each subscription that are kept, in memory; a console reports its last ones anew."""
LONGEST_TOLD = 300
"""Characters that are kept of what a target has said."""
OF_TESTS = "notification/"
"""How ids of events begin that are tests only."""


class SubscriptionKey(NamedTuple):
    """What a subscription is known by."""

    project: str
    name: str


@dataclass(slots=True)
class _Tries:
    """What is known of the deliveries of one subscription."""

    newest: deque[DeliveryTry] = field(default_factory=lambda: deque(maxlen=TRIES_KEPT))
    failures: int = 0


class DeliveryBook:
    """What consoles have reported, and what they are to send as a test."""

    def __init__(self) -> None:
        self._tries: dict[SubscriptionKey, _Tries] = {}
        self._consoles: list[Callable[[str], bool]] = []
        self._untold: deque[SubscriptionTest] = deque()
        self._tests: dict[str, asyncio.Future[DeliveryTry]] = {}

    def standing(self, subscription: Subscription) -> Subscription:
        """A subscription with what is known of its deliveries."""
        known = self._tries.get(SubscriptionKey(subscription.project, subscription.name))
        if known is None or not known.newest:
            return subscription
        return replace(subscription, failures=known.failures, last=known.newest[-1])

    def tries(self, key: SubscriptionKey) -> tuple[DeliveryTry, ...]:
        """The last tries of a subscription, the newest first."""
        known = self._tries.get(key)
        return () if known is None else tuple(reversed(known.newest))

    def forget(self, key: SubscriptionKey) -> None:
        """Forget the tries of a subscription that is gone, or goes elsewhere from now on."""
        self._tries.pop(key, None)

    def fails(self, key: SubscriptionKey) -> bool:
        """Whether the target of a subscription counts as failing."""
        known = self._tries.get(key)
        return known is not None and known.failures >= FAILING_DELIVERIES

    def note(self, reported: ReportedDelivery) -> None:
        """Keep how a try has ended, unless it is known."""
        outcome = replace(reported.outcome, told=reported.outcome.told[:LONGEST_TOLD])
        known = self._tries.setdefault(SubscriptionKey(reported.project, reported.name), _Tries())
        if any((each.event, each.at) == (outcome.event, outcome.at) for each in known.newest):
            return
        known.newest.append(outcome)
        if outcome.event.startswith(OF_TESTS):
            self._answer(outcome)
        else:
            known.failures = 0 if outcome.taken else known.failures + 1

    def served(self, project: str) -> bool:
        """Whether a console follows that is told of a project's subscriptions."""
        return any(sees(project) for sees in self._consoles)

    @contextmanager
    def console(self, sees: Callable[[str], bool]) -> Iterator[None]:
        """A console follows the subscriptions of projects that it sees."""
        self._consoles.append(sees)
        try:
            yield
        finally:
            self._consoles.remove(sees)

    def untold(self, sees: Callable[[str], bool]) -> tuple[SubscriptionTest, ...]:
        """Tests of projects that a console sees, which is told of them now and nobody after it."""
        found = tuple(each for each in self._untold if sees(each.project))
        self._untold = deque(each for each in self._untold if each not in found)
        return found

    @contextmanager
    def test(self, wanted: SubscriptionTest) -> Iterator[asyncio.Future[DeliveryTry]]:
        """How a test ends, which the next console is told of."""
        ending: asyncio.Future[DeliveryTry] = asyncio.get_running_loop().create_future()
        self._tests[wanted.event] = ending
        self._untold.append(wanted)
        try:
            yield ending
        finally:
            del self._tests[wanted.event]
            self._untold = deque(each for each in self._untold if each != wanted)

    def _answer(self, outcome: DeliveryTry) -> None:
        ending = self._tests.get(outcome.event)
        if ending is not None and not ending.done():
            ending.set_result(outcome)
