"""The feed: all that a caller may look at and its changes in order, for programs that keep a picture of them."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.operations import Operations
from coordinator.signals import ANY_RECORD, Listener
from coordinator.trust.caller import Caller
from coordinator.views.jobs import job_view
from coordinator.views.nodes import node_view
from coordinator.views.quotas import queue_page
from muster.domain.feed import FEED_QUEUE, FeedBatch, FeedKey, FeedPart, FeedPlace
from muster.domain.fleet.access import Access, Project
from muster.domain.fleet.standing_view import QueueLine
from muster.domain.ids import JobId, NodeId
from muster.domain.revisions import Revised, Revisions

FEED_PACE = 0.25
"""Seconds between two rounds for one reader; what changes meanwhile is told once."""
FEED_ROWS = 20
"""Things that are told in one batch; others have their turn between two batches."""
QUEUE_PACE = 2.0
"""Seconds between two looks at the queue for one reader."""
FEED_SILENCE = 5.0
"""Seconds after which a reader to whom there is nothing to tell is told how far it has come."""


class FeedOperations:
    """What callers may ask of the feed."""

    def __init__(
        self,
        operations: Operations,
        engine: Engine,
        shown: Callable[[Project], Project],
        pace: float = FEED_PACE,
        queue_pace: float = QUEUE_PACE,
    ) -> None:
        """`shown` gives a project as callers see it."""
        self._operations = operations
        self._engine = engine
        self._shown = shown
        self._pace = pace
        self._queue_pace = queue_pace
        self._life = secrets.token_hex(8)

    async def follow(
        self, caller: Caller, place: FeedPlace, parts: Collection[FeedPart]
    ) -> AsyncGenerator[FeedBatch, None]:
        """All that the caller may look at, or what has changed since `place`; then changes, without an end.

        Nothing waits for a reader: each thing is told as it is when the reader takes it, whatever it was meanwhile.
        """
        async with self._operations.begin(caller, "feed.follow"):
            reading = _Reading(caller, frozenset(parts), _instance(self._life, caller), self._engine.signals.revisions)
            reading.begin(place)
            with self._engine.signals.listen(*((ANY_RECORD,) if parts else ())) as listener:
                while True:
                    for rows in reading.round():
                        batch = partial(self._batch, reading, rows)
                        yield await self._engine.query(batch, after=Freshness.COMMITTED)
                        await asyncio.sleep(0)
                    yield await self._last_of_round(reading)
                    await asyncio.sleep(self._pace)
                    await _something(listener, bool(parts))

    def _batch(self, reading: "_Reading", rows: Sequence[Revised[FeedKey]], cluster: Cluster, _: datetime) -> FeedBatch:
        named = [each.key for each in rows if each.there]
        jobs = [JobId(key.name) for key in named if key.part is FeedPart.JOBS and key.name in cluster.jobs]
        nodes = [NodeId(key.name) for key in named if key.part is FeedPart.NODES and key.name in cluster.nodes]
        projects = [key.name for key in named if key.part is FeedPart.PROJECTS and key.name in cluster.projects]
        return replace(
            reading.told(rows[-1].revision),
            jobs=[job_view(cluster, job, whole=False) for job in jobs],
            nodes=[node_view(cluster, node) for node in nodes],
            projects=[self._shown(cluster.projects[name]) for name in projects],
            gone=[each.key for each in rows if not each.there],
        )

    async def _last_of_round(self, reading: "_Reading") -> FeedBatch:
        """The end of a round, with the queue where it is other than before."""
        queue, now = reading.queue, asyncio.get_running_loop().time()
        if FeedPart.QUEUE in reading.parts and now >= reading.queue_due:
            reading.queue_due = now + self._queue_pace
            queue = await self._engine.query(
                lambda cluster, now: _first_of_queue(cluster, now, reading.caller), after=Freshness.COMMITTED
            )
        return replace(reading.told(reading.until, caught_up=True), queue=reading.unlike(queue))


@dataclass(slots=True)
class _Reading:
    """How far one reader has come."""

    caller: Caller
    parts: frozenset[FeedPart]
    instance: str
    revisions: Revisions[FeedKey]
    known: int = 0
    until: int = 0
    """The revision at which the round that is under way ends."""
    anew: bool = True
    """Whether the next batch begins anew."""
    queue: tuple[QueueLine, ...] | None = None
    """The queue as it was told last."""
    queue_due: float = 0.0
    """When it is looked at again, by the time of the loop."""

    def begin(self, place: FeedPlace) -> None:
        """Go on at a place, or begin anew where it means nothing."""
        revisions = self.revisions
        if place.instance == self.instance and revisions.complete_from <= place.revision <= revisions.newest:
            self.known, self.anew = place.revision, False

    def round(self) -> Sequence[Sequence[Revised[FeedKey]]]:
        """What the reader does not know yet and may look at, in pieces."""
        if self.known < self.revisions.complete_from and not self.anew:
            self.known, self.anew = 0, True  # it has read so slowly that it cannot be told what is gone
        self.until = self.revisions.newest
        seen = self.caller.seen_projects
        found = [
            each
            for each in self.revisions.since(self.known)
            if each.key.part in self.parts
            and (seen is None or each.key.part is FeedPart.NODES or each.scope in seen)
            and (each.there or not self.anew)
        ]
        return [found[start : start + FEED_ROWS] for start in range(0, len(found), FEED_ROWS)]

    def told(self, revision: int, *, caught_up: bool = False) -> FeedBatch:
        """A batch without anything in it, after which the reader knows all up to a revision."""
        anew, self.anew, self.known = self.anew, False, revision
        return FeedBatch(
            place=FeedPlace(instance=self.instance, revision=revision),
            anew=anew,
            caught_up=caught_up,
            complete_from=self.revisions.complete_from,
        )

    def unlike(self, queue: tuple[QueueLine, ...] | None) -> tuple[QueueLine, ...] | None:
        """The queue where it is other than it was told last; None where it is not."""
        if queue == self.queue:
            return None
        self.queue = queue
        return queue


def _first_of_queue(cluster: Cluster, now: datetime, caller: Caller) -> tuple[QueueLine, ...]:
    return queue_page(
        cluster, now, lambda project: caller.may(Access.VIEWER, project), lambda _: True, 1, FEED_QUEUE
    ).lines


def _instance(life: str, caller: Caller) -> str:
    """The name of a life of the coordinator for readers with these rights: who sees more than before begins anew."""
    seen = caller.seen_projects
    rights = "*" if seen is None else "\n".join(sorted(seen))
    return f"{life}-{hashlib.sha256(rights.encode()).hexdigest()[:16]}"


async def _something(listener: Listener, told: bool) -> None:
    """Wait until something has changed, or until one who is `told` has heard nothing for a while."""
    try:
        async with asyncio.timeout(FEED_SILENCE if told else None):
            await listener.wait()
    except TimeoutError:
        return
