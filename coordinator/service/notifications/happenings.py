"""All events in one line: of jobs, nodes and the fleet together, as far as their reader may see them."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Job
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.archive import StoredPast
from coordinator.service.operations import Operations
from coordinator.service.stories import EVENTS_AT_ONCE, STORY_PACE
from coordinator.signals import ANY_STORY
from coordinator.trust.caller import Caller
from muster.domain.event import FleetEvent, JobEvent, NodeEvent
from muster.domain.fleet.access import Access
from muster.domain.ids import JobId
from muster.domain.notifications.happening import AnyEvent, EventPlace, Happening, ToldJob


class HappeningPage(NamedTuple):
    """Some of all events, and where their reader goes on, also past what it may not see."""

    happenings: Sequence[Happening]
    place: EventPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class HappeningWish:
    """Which of all events a reader wants."""

    after: EventPlace | None = None
    """Only those past this place; None: all that are stored, or with `follow` only what happens from now on."""
    follow: bool = False
    """Whether to go on with what happens from now on."""


class HappeningOperations:
    """What callers may read of everything that happens."""

    def __init__(
        self, operations: Operations, engine: Engine, past: StoredPast, fleet: str, pace: float = STORY_PACE
    ) -> None:
        """`fleet`: the id of the fleet."""
        self._operations = operations
        self._engine = engine
        self._past = past
        self._fleet = fleet
        self._pace = pace

    async def all(self, caller: Caller, wish: HappeningWish) -> AsyncGenerator[HappeningPage, None]:
        """Pages of events: of jobs in projects that the caller sees, of nodes, and for operators of all, of the fleet.

        A follower is told more until it leaves, and at first where it begins. Events of jobs that are deleted are gone.
        """
        async with self._operations.begin(caller, "events.list"):
            with self._engine.signals.listen(ANY_STORY) as listener:
                place = await self._beginning(wish)
                if wish.follow:
                    yield HappeningPage((), place)
                while True:
                    page = await self._page(caller, place)
                    if page.place != place:
                        place = page.place
                        yield page
                        continue
                    if not wish.follow:
                        return
                    await listener.wait()
                    await asyncio.sleep(self._pace)  # of much that happens at once there are many signals

    async def _beginning(self, wish: HappeningWish) -> EventPlace:
        """Where a reader begins; who says a place that is yet to come has known another past, as before a restore."""
        if wish.after is None:
            return await self._past.newest_place() if wish.follow else EventPlace()
        if not any(wish.after):
            return wish.after
        newest = await self._past.newest_place()
        return EventPlace(*map(min, wish.after, newest))

    async def _page(self, caller: Caller, place: EventPlace) -> HappeningPage:
        """The next events past a place, in the order of time as far as each line of numbers allows."""
        of_jobs = await self._past.all_job_events(place.jobs, EVENTS_AT_ONCE)
        of_others = await self._past.all_stories(place.stories, EVENTS_AT_ONCE)
        jobs = await self._jobs({event.job for event in of_jobs})
        told = _placed(merge(of_jobs, of_others, key=attrgetter("at")), place)
        found = [
            Happening(event=each, place=at, fleet=self._fleet, job=None if job is None else _told_job(job))
            for event, at in told
            for job in [jobs.get(event.job) if isinstance(event, JobEvent) else None]
            for each in [_seen(caller, event, job)]
            if each is not None
        ]
        numbers = EventPlace(
            of_jobs[-1].number if of_jobs else place.jobs, of_others[-1].number if of_others else place.stories
        )
        return HappeningPage(found, numbers)

    async def _jobs(self, wanted: set[JobId]) -> Mapping[JobId, Job]:
        """The jobs of these that are there."""

        def read(cluster: Cluster, _: object) -> Mapping[JobId, Job]:
            return {job: cluster.jobs[job] for job in wanted if job in cluster.jobs}

        return await self._engine.query(read, after=Freshness.COMMITTED) if wanted else {}


def _placed(events: Iterable[AnyEvent], place: EventPlace) -> Iterator[tuple[AnyEvent, EventPlace]]:
    """Each event with the place of a reader who has been told it and those before it."""
    for event in events:
        place = place.past(event)
        yield event, place


def _seen(caller: Caller, event: AnyEvent, job: Job | None) -> AnyEvent | None:
    """An event as the caller may see it; None: not at all."""
    match event:
        case JobEvent():
            return event if job is not None and caller.may(Access.VIEWER, job.spec.project) else None
        case NodeEvent():
            return event if caller.may(Access.VIEWER) else replace(event, by="")
        case FleetEvent():
            return event if caller.may(Access.OPERATOR) else None


def _told_job(job: Job) -> ToldJob:
    spec = job.spec
    return ToldJob(id=job.id, name=spec.name, project=spec.project, owner=job.owner, labels=spec.labels)
