"""Virtual time, chance and the story of one run. Nothing here knows a real clock; a seed decides everything."""

import hashlib
import heapq
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
"""Virtual time is counted in microseconds, so that sums are exact."""


class Violation(Exception):  # noqa: N818 - it is what the simulation looks for
    """Something is as it must never be."""

    def __init__(self, message: str, *subjects: str) -> None:
        super().__init__(message)
        self.subjects = subjects


class Timer:
    """Something that will happen, unless it is cancelled."""

    __slots__ = ("act",)

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act

    def cancel(self) -> None:
        self.act = None


class World:
    """Time passes from one planned happening to the next."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.at = 0
        """Microseconds since EPOCH."""
        self.happened = 0
        self._planned: list[tuple[int, int, Timer]] = []
        self._order = 0
        self._story: list[tuple[int, str, tuple[str, ...]]] = []

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.at)

    @property
    def seconds(self) -> float:
        return self.at / SECOND

    def chance(self, purpose: str) -> Random:
        """Chance of its own for each purpose, so that a change in one place leaves the others' luck as it was."""
        return Random(f"{self.seed}/{purpose}")

    def after(self, seconds: float, act: Callable[[], None]) -> Timer:
        return self.at_time(self.at + round(seconds * SECOND), act)

    def at_time(self, at: int, act: Callable[[], None]) -> Timer:
        timer = Timer(act)
        self._order += 1
        heapq.heappush(self._planned, (max(at, self.at), self._order, timer))
        return timer

    def run_until(self, at: int) -> None:
        """Let everything happen that is due by then."""
        planned = self._planned
        while planned and planned[0][0] <= at:
            self.at, _, timer = heapq.heappop(planned)
            if timer.act is not None:
                self.happened += 1
                timer.act()
        self.at = at

    def tell(self, text: str, *subjects: str) -> None:
        """Add a line to the story of these subjects: nodes, jobs, the coordinator."""
        self._story.append((self.at, text, subjects))

    def fingerprint(self) -> str:
        """Equal for two runs in which the same things happened in the same order."""
        digest = hashlib.blake2b(digest_size=8)
        for at, text, subjects in self._story:
            digest.update(f"{at} {subjects} {text}\n".encode())
        return digest.hexdigest()

    def story(self, subjects: Collection[str], last: int) -> Iterator[str]:
        """The last lines about any of the subjects; without subjects: about everything."""
        lines = [line for line in self._story if not subjects or any(each in subjects for each in line[2])]
        for at, text, about in lines[-last:]:
            yield f"{at / SECOND:12.6f} s  {', '.join(about):<24} {text}"


class Clock:
    """A clock that runs a little too fast or too slow."""

    def __init__(self, world: World, rate: float = 1.0) -> None:
        self.world = world
        self.rate = rate
        """Seconds that it counts in a true second."""
        self._set = timedelta()

    @property
    def seconds(self) -> float:
        return self.world.at / SECOND * self.rate

    @property
    def now(self) -> datetime:
        return EPOCH + self._set + timedelta(microseconds=round(self.world.at * self.rate))

    def turn(self, by: timedelta) -> None:
        """Set it, as people and time servers do while a program that does not follow them is down."""
        self._set += by

    def left(self, until: datetime) -> float:
        """Seconds by this clock until it shows a time."""
        return max(0.0, (until - self.now).total_seconds())


class Life:
    """One run of a program by its clock: what it has planned dies with it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.ended_at: int | None = None
        self._frozen_until = 0

    @property
    def over(self) -> bool:
        return self.ended_at is not None

    def end(self) -> None:
        self.ended_at = self.clock.world.at

    def freeze(self, seconds: float) -> None:
        """Do nothing for a while, then all that has come due meanwhile."""
        self._frozen_until = self.clock.world.at + round(seconds * SECOND)

    def after(self, seconds: float, act: Callable[[], None]) -> Timer:
        """Do something later, by its clock; not while it is frozen."""
        world = self.clock.world

        def unless_over() -> None:
            if self.ended_at is None:
                if world.at < self._frozen_until:
                    world.at_time(self._frozen_until, lambda: timer.act and timer.act())
                else:
                    act()

        timer = world.after(seconds / self.clock.rate, unless_over)
        return timer

    def soon(self, act: Callable[[], None]) -> None:
        """Do something at once, or when it is not frozen any more."""
        if self.clock.world.at < self._frozen_until:
            self.after(0.0, act)
        elif self.ended_at is None:
            act()
