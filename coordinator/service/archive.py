"""What is read from the disk beside the engine: logs, events, and executions of attempts that are not in memory."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from coordinator.core.records import Execution
from coordinator.core.spent import SpentSums, SpentWaits, SpentWish
from coordinator.engine.engine import Engine
from coordinator.service.watching.logs import LogMerge
from coordinator.service.watching.points import PointMerge
from coordinator.store.logs.logs import LogStore
from coordinator.store.logs.points import LogPoints
from coordinator.store.store import Store
from muster.domain.errors import ExhaustedError
from muster.domain.event import FleetEvent, JobEvent, NodeEvent, StoryEvent
from muster.domain.ids import JobId, NodeId
from muster.domain.notifications.happening import EventPlace

T = TypeVar("T")

READERS = 2
"""Threads that read old attempts; a store that hangs holds these, and nothing else of the coordinator."""
READ_WITHIN = 5.0
"""Seconds for which a caller waits for them; clients wait for twice as long."""


class StoredPast:
    """Reads from the store what the engine does not keep in memory."""

    def __init__(self, store: Store, patience: float = READ_WITHIN) -> None:
        self._store = store
        self._patience = patience
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store reader")

    async def executions(self, job: JobId, attempt: int) -> tuple[Execution, ...]:
        """Executions of one attempt by rank, none if the store has none; raises ExhaustedError if it takes too long."""
        what = f"the executions of attempt {attempt} of job {job}"
        return await self._read(what, partial(self._store.executions, job, attempt))

    async def events(self, job: JobId, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of a job after a number, at most so many; raises ExhaustedError if it takes too long."""
        return await self._read(f"the events of job {job}", partial(self._store.events, job, after, most))

    async def node_events(self, node: NodeId, after: int, most: int) -> tuple[NodeEvent, ...]:
        """Events of a node after a number, at most so many; raises ExhaustedError if it takes too long."""
        return await self._read(f"the events of node {node}", partial(self._store.node_events, node, after, most))

    async def fleet_events(self, after: int, most: int) -> tuple[FleetEvent, ...]:
        """Events of the fleet after a number, at most so many; raises ExhaustedError if it takes too long."""
        return await self._read("the events of the fleet", partial(self._store.fleet_events, after, most))

    async def all_job_events(self, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of all jobs after a number, at most so many; raises ExhaustedError if it takes too long."""
        return await self._read("the events of all jobs", partial(self._store.all_job_events, after, most))

    async def all_stories(self, after: int, most: int) -> tuple[StoryEvent, ...]:
        """Events of all nodes and of the fleet after a number, as `all_job_events`."""
        return await self._read("the events of all nodes", partial(self._store.all_stories, after, most))

    async def newest_place(self) -> EventPlace:
        """The numbers of the newest events; raises ExhaustedError if it takes too long."""
        return await self._read("the newest events", self._store.newest_place)

    async def spent(self, wish: SpentWish) -> SpentSums:
        """What attempts have held in a span of time; raises ExhaustedError if it takes too long."""
        return await self._read("what was used", partial(self._store.spent, wish))

    async def waits(self, wish: SpentWish, seen_at: datetime) -> tuple[SpentWaits, ...]:
        """How long attempts that had ended were in the queue; raises ExhaustedError if it takes too long."""
        return await self._read("how long jobs waited", partial(self._store.waits, wish, seen_at))

    async def _read(self, what: str, read: Callable[[], T]) -> T:
        found = asyncio.get_running_loop().run_in_executor(self._readers, read)
        try:
            async with asyncio.timeout(self._patience):
                return await found
        except TimeoutError:
            raise ExhaustedError(
                f"{what} could not be read within {self._patience:g} s, as others are being read or the disk is slow; "
                "try again"
            ) from None

    def close(self) -> None:
        """Begin no other reading."""
        self._readers.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Where the past of jobs is read."""

    logs: LogMerge
    points: PointMerge
    past: StoredPast

    @classmethod
    def of(cls, engine: Engine, logs: LogStore, store: Store) -> "Archive":
        """The past of the jobs of an engine, whose logs and records are kept in these."""
        points = PointMerge(engine, LogPoints(logs))
        return cls(logs=LogMerge(engine, logs), points=points, past=StoredPast(store))
