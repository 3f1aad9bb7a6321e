"""Jobs in the order in which they were submitted, so that a page of a long list costs no more than one of a short."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TypeAlias

from coordinator.core.records import Job
from muster.domain.ids import JobId

Place: TypeAlias = tuple[int, JobId]
"""Sequence number and id of a job."""


def place_of(job: Job) -> Place:
    """Where a job stands in every order that it is in."""
    return (job.sequence, job.id)


class JobOrder:
    """Places of jobs, by sequence number."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: list[Place] = []

    def add(self, place: Place) -> None:
        """Have a job among them; it must not be."""
        insort(self._places, place)

    def remove(self, place: Place) -> None:
        """Have a job among them no longer; it must be."""
        del self._places[bisect_left(self._places, place)]

    def newest_first(self, before: int | None = None) -> Iterator[Place]:
        """From the newest on, or from the newest below this sequence number."""
        start = len(self._places) if before is None else bisect_left(self._places, (before, JobId("")))
        return (self._places[number] for number in range(start - 1, -1, -1))
