"""Since when the first job of each project is kept waiting by a term, so that nobody is passed for ever."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import NamedTuple

from coordinator.core.bar_note import BarNote
from coordinator.core.sharing.precedence import Bar
from muster.domain.ids import JobId

BAR_PATIENCE = timedelta(minutes=10)
"""How long the first job of a project is passed by others while a term of its own keeps it waiting."""


class BarredFirst(NamedTuple):
    """The first job of a project, and the term that keeps it waiting."""

    job: JobId
    bar: Bar
    since: datetime


class BarPatience:
    """What is known of the first jobs of projects; since when each waits is stored with its attempt."""

    def __init__(self, touch: Callable[[str], None]) -> None:
        """`touch` is told of each unit for whose terms others wait that did not before, or no longer."""
        self._touch = touch
        self._firsts: dict[str, BarredFirst] = {}
        self._of_unit: dict[str, dict[str, None]] = {}
        """The projects whose first jobs wait for a term, by the unit with the term."""
        self._ends: list[tuple[datetime, str]] = []
        """A heap of the times at which patience is at an end, with units; some of jobs that do not wait any more."""
        self._told_at: datetime | None = None
        self._changed: dict[JobId, BarNote | None] = {}

    def of(self, project: str) -> BarredFirst | None:
        """What keeps the first job of a project waiting; None: nothing that was noted."""
        return self._firsts.get(project)

    def note(self, project: str, job: JobId, bar: Bar, now: datetime, stored: BarNote | None) -> None:
        """Note that a term keeps the first job of a project waiting; since when stays as it was first noted.

        `stored`: what the attempt says of it, which a coordinator that starts goes on with.
        """
        known = self._firsts.get(project)
        if known is None or (known.job, known.bar[:2], known.bar.pool) != (job, bar[:2], bar.pool):
            self.forget(project)
            since = now
            if stored is not None and (stored.kind, stored.unit, stored.pool) == (bar.kind, bar.unit, bar.pool):
                since = min(now, stored.since)  # a clock that was ahead may have told it
            self._firsts[project] = BarredFirst(job, bar, since)
            self._changed[job] = BarNote(kind=bar.kind, unit=bar.unit, pool=bar.pool, since=since)
            self._of_unit.setdefault(bar.unit, {})[project] = None
            heappush(self._ends, (since + BAR_PATIENCE, bar.unit))

    def forget(self, project: str) -> None:
        """Note that no term keeps the first job of a project waiting."""
        known = self._firsts.pop(project, None)
        if known is not None:
            projects = self._of_unit[known.bar.unit]
            del projects[project]
            if not projects:
                del self._of_unit[known.bar.unit]
            self._touch(known.bar.unit)
            self._changed[known.job] = None

    def take_changed(self) -> Mapping[JobId, BarNote | None]:
        """What the attempts of jobs are to say, where that is something else than when this was asked last."""
        changed, self._changed = self._changed, {}
        return changed

    def doubt(self, project: str) -> None:
        """Hear that the first job of a project may be another one."""
        if (known := self._firsts.get(project)) is not None:
            self._touch(known.bar.unit)

    def tell_ends(self, now: datetime) -> None:
        """Tell of units for whose terms patience has come to an end since this was asked last."""
        if self._told_at is not None and now < self._told_at:  # somebody has set the clock
            self._ends = sorted((first.since + BAR_PATIENCE, first.bar.unit) for first in self._firsts.values())
            for unit in self._of_unit:
                self._touch(unit)
        self._told_at = now
        while self._ends and self._ends[0][0] <= now:
            self._touch(heappop(self._ends)[1])

    def at_an_end(self, units: Iterable[str], pool: str, now: datetime) -> Iterator[tuple[str, BarredFirst]]:
        """Jobs that have waited too long for terms of these units in a pool, each with its project."""
        for unit in units:
            for project in self._of_unit.get(unit, ()):
                first = self._firsts[project]
                if first.bar.pool == pool and now >= first.since + BAR_PATIENCE:
                    yield project, first
