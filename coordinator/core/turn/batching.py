"""How events that come close together become one turn: the rule by which the engine takes them in and answers them."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from coordinator.core.answers import Answer
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import Event, TimePassed
from coordinator.core.turn.turn import Turn

BATCH = 2000
"""Most events that are taken in at once: bounds how long an answer waits for those behind it."""
HOLD = 0.02
"""Seconds for which a turn stays open for others if all that it changes is how far some executions are.

Every commit costs about as much as ten changes in it, and the members of a gang report one after the other. What is
lost if the coordinator ends meanwhile was not acknowledged: agents that open new streams tell it again.
"""

Step = Callable[[Turn, Event], Answer]
Finish = Callable[[Turn], None]


class Asking(Protocol):
    """What waits to be taken in: events, or a question about what comes of all before it."""

    @property
    def events(self) -> Sequence[Event]:
        """Taken in one after the other; a question has none."""
        ...

    @property
    def waited_for(self) -> bool:
        """Whether somebody waits for the answer."""
        ...


Asked = TypeVar("Asked", bound=Asking)


class OpenTurn(Generic[Asked]):
    """A turn that takes in what waits, until it is committed; whoever waits for an answer closes it."""

    def __init__(self, cluster: Cluster, now: datetime, closes_at: float, step: Step, finish: Finish) -> None:
        """Begin with nothing; `closes_at` is when it closes at the latest, on the clock of `stays_open`.

        `step` takes each event in, `finish` sees to what follows from all of them.
        """
        self.turn = Turn(cluster, now)
        self.waiting: list[Asked] = []
        """What somebody waits for."""
        self.closes_at = closes_at
        self._step = step
        self._finish = finish
        self._answers: list[tuple[Asked, list[Answer]]] = []

    def take(self, batch: Sequence[Asked], now: datetime) -> None:
        """Step events, and then time if a deadline has come; where there is neither nothing is done.

        A deadline comes last, so that a heartbeat that waits here counts before its sender is judged.
        """
        if not batch and not self._is_due(now):
            return
        self.turn.go_on(now)
        for asked in batch:
            answers = [self._step(self.turn, event) for event in asked.events]
            if asked.waited_for:
                self.waiting.append(asked)
                self._answers.append((asked, answers))
        if self._is_due(now):
            self._step(self.turn, TimePassed())
        self._finish(self.turn)

    def stays_open(self, at: float) -> bool:
        """Whether others may still be taken in: nobody waits, and nothing has to be done about what has changed."""
        return self.turn.may_wait and not self.waiting and at < self.closes_at

    def answered(self) -> Iterator[tuple[Asked, list[Answer]]]:
        """What came of what somebody waits for, once it is durable: of events first, questions see all of them."""
        yield from ((asked, answers) for asked, answers in self._answers if asked.events)
        yield from ((asked, answers) for asked, answers in self._answers if not asked.events)

    def _is_due(self, now: datetime) -> bool:
        due = self.turn.cluster.deadlines.next_at
        return due is not None and due <= now
