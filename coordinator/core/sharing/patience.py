"""Since when the first job of each project is kept waiting by a term, so that nobody is passed for ever."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

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
    """What is known of the first jobs of projects; a coordinator that starts begins anew."""

    def __init__(self) -> None:
        self._firsts: dict[str, BarredFirst] = {}

    def of(self, project: str) -> BarredFirst | None:
        """What keeps the first job of a project waiting; None: nothing that was noted."""
        return self._firsts.get(project)

    def note(self, project: str, job: JobId, bar: Bar, now: datetime) -> None:
        """Note that a term keeps the first job of a project waiting; since when stays as it was first noted."""
        known = self._firsts.get(project)
        if known is None or (known.job, known.bar[:2], known.bar.pool) != (job, bar[:2], bar.pool):
            self._firsts[project] = BarredFirst(job, bar, now)

    def forget(self, project: str) -> None:
        """Note that no term keeps the first job of a project waiting."""
        self._firsts.pop(project, None)

    def at_an_end(self, units: Collection[str], pool: str, now: datetime) -> Iterator[tuple[str, BarredFirst]]:
        """Jobs that have waited too long for terms of these units in a pool, each with its project."""
        for project, first in self._firsts.items():
            if first.bar.unit in units and first.bar.pool == pool and now >= first.since + BAR_PATIENCE:
                yield project, first
