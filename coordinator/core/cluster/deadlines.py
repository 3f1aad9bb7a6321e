"""Deadlines: what is due at which time, one class for each, earliest first.

A deadline says only that something must be looked at; whether it still applies is decided when it comes.
"""

import heapq
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

from coordinator.core.records import Attempt, Job
from muster.domain.fleet.window import Window
from muster.domain.ids import AttemptId, ExecutionId, JobId, NodeId

FENCE_NOTED_EVERY = timedelta(minutes=1)
"""How often it is stored how much of a fence is over; a restart makes fences longer by no more than that."""
QUEUE_TIME_NOTED = 16
"""How often it is stored how much of its time in the queue an attempt has used up.

A restart gives back no more than one part; times of before it were told by another clock.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseDue:
    """The lease of a node may have ended."""

    node: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintDue:
    """What a node runs may have to go because of its taints."""

    node: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceDue:
    """A node must be told what it may clear away."""

    node: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDue:
    """The pause before an attempt may be over, or the progress of its fence must be stored."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInDue:
    """All executions of an attempt must be armed."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimeDue:
    """The user code of an attempt has run for as long as it may."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleDue:
    """An attempt may have gone unused for so long that people are told, or that it is stopped."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleDue:
    """The queue is worth another cycle, as the last one has looked as often as it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionDue:
    """Gangs that were safe from eviction for some time may be evicted now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDue:
    """An attempt may have been in the queue for as long as it may, or how long it was must be stored."""

    attempt: AttemptId
    since: datetime
    """Which stay in the queue it is about, by its begin as it was stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldDue:
    """The time before which a job does not begin may have come."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteDue:
    """A job has ended so long ago that it is to be forgotten."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreDue:
    """The outputs of an execution have been on their way for as long as they may."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowDue:
    """A window may have ended."""

    window: str


Deadline = (
    LeaseDue
    | ClearanceDue
    | StartDue
    | CheckInDue
    | RunTimeDue
    | IdleDue
    | CycleDue
    | ProtectionDue
    | QueueDue
    | HoldDue
    | DeleteDue
    | StoreDue
    | WindowDue
    | TaintDue
)


def queue_noted_every(limit: timedelta) -> timedelta:
    """How often it is stored how long an attempt was in the queue, where so much is its limit."""
    return max(limit / QUEUE_TIME_NOTED, timedelta(minutes=1))


class Deadlines:
    """All deadlines to come; each is given out once, at its time or later."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, Deadline]] = []
        self._numbers = count()
        """Numbers that keep deadlines of one moment in the order in which they were added."""
        self._planned: dict[LeaseDue | TaintDue, datetime] = {}
        """When the lease and the taints of each node are looked at next; one look at a time is planned."""

    def add(self, at: datetime, deadline: Deadline) -> None:
        """Have something looked at, at a time."""
        heapq.heappush(self._heap, (at, next(self._numbers), deadline))

    def watch_lease(self, node: NodeId, at: datetime) -> None:
        """Have the lease of a node looked at, at this time or sooner."""
        self._plan(at, LeaseDue(node=node))

    def watch_taints(self, node: NodeId, at: datetime) -> None:
        """Have what a node runs looked at because of its taints, at this time or sooner."""
        self._plan(at, TaintDue(node=node))

    def watch_attempt(self, attempt: Attempt, job: Job) -> None:
        """Have the limits in time of an attempt looked at when they are due."""
        attempt_id = attempt.attempt_id
        if attempt.not_before is not None and attempt.goal is None:
            noted_at = attempt.fence_noted_at
            looks = attempt.not_before if noted_at is None else min(attempt.not_before, noted_at + FENCE_NOTED_EVERY)
            self.add(looks, StartDue(attempt=attempt_id))
        if attempt.deadline is not None and attempt.released_at is None:
            self.add(attempt.deadline, CheckInDue(attempt=attempt_id))
        limit = attempt.run_limit(job.spec.timeouts.run)
        if limit is not None and attempt.released_at is not None:
            self.add(attempt.released_at + limit, RunTimeDue(attempt=attempt_id))

    def watch_job(self, job: Job) -> None:
        """Have a job looked at when its time has come to begin, and when it is to be forgotten."""
        if job.ended_at is None:
            if job.spec.not_before is not None:
                self.add(job.spec.not_before, HoldDue(job=job.id))
        elif job.spec.delete_after is not None:
            self.add(job.ended_at + job.spec.delete_after, DeleteDue(job=job.id))

    def watch_window(self, window: Window) -> None:
        """Have a window looked at when it ends."""
        self.add(window.ends, WindowDue(window=window.name))

    def watch_queue(self, attempt: Attempt, job: Job) -> None:
        """Have the time of an attempt in the queue looked at, if it has a limit and is there."""
        limit, since, counts_from = job.spec.timeouts.queue, attempt.queued_since, attempt.placeable_since
        if limit is not None and since is not None and counts_from is not None and attempt.goal is None:
            left = max(timedelta(), limit - attempt.queued_for)
            looks = counts_from + min(left, queue_noted_every(limit))
            self.add(looks, QueueDue(attempt=attempt.attempt_id, since=since))

    def forget_node(self, node: NodeId) -> None:
        """Look at the lease and the taints of a node no longer."""
        self._planned.pop(LeaseDue(node=node), None)
        self._planned.pop(TaintDue(node=node), None)

    def planned(self, deadline: LeaseDue | TaintDue) -> datetime | None:
        """When the lease or the taints of a node are looked at next; None: no look is planned."""
        return self._planned.get(deadline)

    @property
    def next_at(self) -> datetime | None:
        """The time of the earliest deadline; None while there is none."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: datetime) -> list[tuple[datetime, Deadline]]:
        """Deadlines that have come, each with its time, earliest first."""
        due: list[tuple[datetime, Deadline]] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, deadline = heapq.heappop(self._heap)
            if isinstance(deadline, LeaseDue | TaintDue):
                if self._planned.get(deadline) != at:
                    continue  # it was to be looked at sooner, or its node is gone
                del self._planned[deadline]
            due.append((at, deadline))
        return due

    def _plan(self, at: datetime, deadline: LeaseDue | TaintDue) -> None:
        planned = self._planned.get(deadline)
        if planned is None or at < planned:
            self._planned[deadline] = at
            self.add(at, deadline)
