"""Room on the disk that is kept for deletions: without it a job whose log filled the disk could not be deleted."""

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from coordinator.core.records import Change, DropJob, Execution
from coordinator.core.spent import SpentSums, SpentWaits, SpentWish
from coordinator.store.held_room import hold_room
from coordinator.store.store import Snapshot, Store, StoreError
from muster.domain.event import FleetEvent, JobEvent, NodeEvent, StoryEvent
from muster.domain.ids import JobId, NodeId
from muster.domain.notifications.happening import EventPlace

log = logging.getLogger(__name__)

RESERVE = 8 << 20
"""Bytes of the reserve file; a deletion writes some pages of the database and of its write-ahead log."""

_PAUSE = 60.0
"""Seconds between two attempts to take it."""


class ReservingStore:
    """A store that frees the reserve when something is to be deleted and the disk is full."""

    def __init__(
        self, store: Store, reserve: Path, size: int = RESERVE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._reserve = reserve
        self._size = size
        self._clock = clock
        self._next_try = float("-inf")
        self._take()

    def load(self) -> Snapshot:
        """Everything, as last committed."""
        return self._store.load()

    def executions(self, job: JobId, attempt: int) -> tuple[Execution, ...]:
        """The executions of one attempt as last committed, by rank."""
        return self._store.executions(job, attempt)

    def events(self, job: JobId, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of a job after a number."""
        return self._store.events(job, after, most)

    def node_events(self, node: NodeId, after: int, most: int) -> tuple[NodeEvent, ...]:
        """Events of a node after a number."""
        return self._store.node_events(node, after, most)

    def fleet_events(self, after: int, most: int) -> tuple[FleetEvent, ...]:
        """Events of the fleet after a number."""
        return self._store.fleet_events(after, most)

    def all_job_events(self, after: int, most: int) -> tuple[JobEvent, ...]:
        """Events of all jobs after a number."""
        return self._store.all_job_events(after, most)

    def all_stories(self, after: int, most: int) -> tuple[StoryEvent, ...]:
        """Events of all nodes and of the fleet after a number."""
        return self._store.all_stories(after, most)

    def newest_place(self) -> EventPlace:
        """The numbers of the newest events."""
        return self._store.newest_place()

    def spent(self, wish: SpentWish) -> SpentSums:
        """What attempts have held in a span of time."""
        return self._store.spent(wish)

    def waits(self, wish: SpentWish, seen_at: datetime) -> tuple[SpentWaits, ...]:
        """How long attempts were in the queue, by group."""
        return self._store.waits(wish, seen_at)

    def commit(self, changes: Sequence[Change]) -> None:
        """Apply all changes in one transaction; those that delete a job may use the reserve."""
        try:
            self._store.commit(changes)
        except StoreError:
            if not any(isinstance(change, DropJob) for change in changes) or not self._free():
                raise
            self._store.commit(changes)
        if self._clock() >= self._next_try:
            self._take()

    def close(self) -> None:
        """Let go of files and connections; what was committed stays."""
        self._store.close()

    def _free(self) -> bool:
        try:
            self._reserve.unlink()
        except OSError:
            return False
        self._next_try = self._clock() + _PAUSE
        log.warning("the disk is full: the reserve is used for a deletion", extra={"bytes": self._size})
        return True

    def _take(self) -> None:
        """Have the reserve on the disk, if it is not there and there is room for more than it."""
        self._next_try = self._clock() + _PAUSE
        try:
            if not self._reserve.exists():
                hold_room(self._reserve, self._size)
        except OSError as error:
            log.warning("no room for deletions is kept", extra={"cause": error.strerror})
