"""Jobs in the order in which they were submitted, so that a page of a long list costs no more than one of a short."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace, merge
from typing import Protocol, TypeAlias

from coordinator.core.records import Job
from muster.domain.ids import JobId

Place: TypeAlias = tuple[int, JobId]
"""Sequence number and id of a job."""


def place_of(job: Job) -> Place:
    """Where a job stands in every order that it is in."""
    return (job.sequence, job.id)


class Order(Protocol):
    """Jobs that can be gone through from the newest to the oldest."""

    def newest_first(self, before: int | None = None) -> Iterator[Place]:
        """Places from the newest on, or from the newest below this sequence number."""
        ...

    def newest(self, before: int | None) -> Place | None:
        """The newest place, or the newest below this sequence number; None: there is none."""
        ...


class JobOrder:
    """Places of jobs, by sequence number."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: list[Place] = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: Place) -> None:
        """Have a job among them; it must not be."""
        insort(self._places, place)

    def remove(self, place: Place) -> None:
        """Have a job among them no longer; it must be."""
        del self._places[bisect_left(self._places, place)]

    def newest_first(self, before: int | None = None) -> Iterator[Place]:
        """Places from the newest on, or from the newest below this sequence number."""
        return (self._places[number] for number in range(self._end(before) - 1, -1, -1))

    def newest(self, before: int | None) -> Place | None:
        """The newest place, or the newest below this sequence number; None: there is none."""
        end = self._end(before)
        return self._places[end - 1] if end else None

    def _end(self, before: int | None) -> int:
        return len(self._places) if before is None else bisect_left(self._places, (before, JobId("")))


class AnyOf:
    """Jobs of several orders that have none in common, for one way from the newest to the oldest."""

    __slots__ = ("_heads", "_orders")

    def __init__(self, orders: Sequence[JobOrder]) -> None:
        self._orders = orders
        self._heads: list[tuple[int, int]] | None = None
        """A heap of the next sequence number of each order, below zero, and which order it is; None: not begun."""

    def newest_first(self, before: int | None = None) -> Iterator[Place]:
        """Places from the newest on, or from the newest below this sequence number."""
        return merge(*(order.newest_first(before) for order in self._orders), reverse=True)

    def newest(self, before: int | None) -> Place | None:
        """The newest place below this sequence number, which is never higher than the one before; None: there is none.

        Only orders are looked at that have jobs above: a step costs no more because there are many orders.
        """
        if self._heads is None:
            found = ((order.newest(before), number) for number, order in enumerate(self._orders))
            self._heads = [(-place[0], number) for place, number in found if place is not None]
            heapify(self._heads)
        heads = self._heads
        while heads and before is not None and -heads[0][0] >= before:
            number = heads[0][1]
            if (place := self._orders[number].newest(before)) is None:
                heappop(heads)
            else:
                heapreplace(heads, (-place[0], number))
        return self._orders[heads[0][1]].newest(1 - heads[0][0]) if heads else None


def in_all(orders: Sequence[Order], before: int | None = None) -> Iterator[tuple[int, JobId | None]]:
    """Jobs that are in all orders, newest first, with the sequence number from which on all were looked at.

    A step that finds none gives None in place of a job, so that who has looked enough can go on there another time.
    Each step goes to where the order with the largest gap goes on: it costs no more because the others are long.
    """
    first, *others = orders
    if not others:
        yield from first.newest_first(before)
        return
    while (place := first.newest(before)) is not None:
        before = place[0]
        for other in others:
            found = other.newest(place[0] + 1)
            if found is None:
                return
            if found != place:
                before = found[0] + 1
                yield before, None
                break
        else:
            yield place
