"""What the steps of a turn did and why: transitions, changed records and looks of the scheduler, each with its cause.

Notes are only collected here; `story` makes lines for the journal and events for people of them once the turn is whole.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from coordinator.core.causes import UNKNOWN_CAUSE, EventCause
from coordinator.core.records import Attempt, Execution, Job
from muster.domain.event import StoryEvent
from muster.domain.ids import ExecutionId, JobId


class Transitioned(NamedTuple):
    """An execution entered another state."""

    before: Execution
    after: Execution
    cause: EventCause


class Changed(NamedTuple):
    """A job or an attempt was added or changed; `before` is None for a new one."""

    before: Job | Attempt | None
    after: Job | Attempt
    cause: EventCause


class Dropped(NamedTuple):
    """A job was forgotten."""

    job: Job
    cause: EventCause


class Offered(NamedTuple):
    """The scheduler looked for seats for a queued job."""

    job: Job
    head: bool
    """Whether everything that is free was offered; others get what is not kept for the head of the queue."""
    refusal: str
    """Why the job did not fit; empty: it was placed."""
    first: bool
    """Whether this is the first refusal since the job was queued or the coordinator started."""
    cause: EventCause
    other: bool
    """Whether it is refused for another reason than before."""


class Noticed(NamedTuple):
    """Something happened to a node or to the fleet."""

    event: StoryEvent
    cause: EventCause


class WentUnused(NamedTuple):
    """An attempt is about to be stopped because nobody uses it."""

    job: Job
    ends_at: datetime
    notices: int
    """How often people were told so of this attempt."""
    cause: EventCause


class OutputsSettled(NamedTuple):
    """Nothing of what the executions of an attempt have left is on its way any more."""

    left: tuple[Execution, ...]
    """Executions that have left something."""
    cause: EventCause


Note = Transitioned | Changed | Dropped | Offered | Noticed | WentUnused | OutputsSettled


class TurnNotes:
    """Collects the notes of one turn under the cause of the event that is being taken in."""

    def __init__(self) -> None:
        self.cause: EventCause = UNKNOWN_CAUSE
        """The cause of the event that is being taken in."""
        self._room_cause: EventCause = UNKNOWN_CAUSE
        """The cause of the first event after which the queue was worth another look."""
        self.taken: list[Note] = []

    def follow(self, cause: EventCause) -> None:
        """Put the notes that come now under this cause."""
        self.cause = cause

    def room_changed(self) -> None:
        """Remember the present cause as that of the next look at the queue."""
        self._room_cause = self.cause

    def follow_room(self) -> None:
        """Put the notes that come now under the cause of the look at the queue."""
        self.cause = self._room_cause

    def of(self, execution: ExecutionId) -> Iterator[Transitioned]:
        """Transitions of one execution in this turn, oldest first."""
        return (note for note in self.taken if isinstance(note, Transitioned) and note.after.id == execution)

    @property
    def unused(self) -> Iterator[JobId]:
        """Jobs of which people are told that nobody uses them."""
        return (note.job.id for note in self.taken if isinstance(note, WentUnused))

    @property
    def retold(self) -> Iterator[JobId]:
        """Queued jobs that wait for another reason than before."""
        return (note.job.id for note in self.taken if isinstance(note, Offered) and note.other)

    def transition(self, before: Execution, after: Execution) -> None:
        """Note that an execution entered another state."""
        self.taken.append(Transitioned(before, after, self.cause))

    def change(self, before: Job | Attempt | None, after: Job | Attempt) -> None:
        """Note that a job or an attempt was added or changed."""
        self.taken.append(Changed(before, after, self.cause))

    def drop(self, job: Job) -> None:
        """Note that a job was forgotten."""
        self.taken.append(Dropped(job, self.cause))

    def notice(self, event: StoryEvent) -> None:
        """Note what happened to a node or to the fleet."""
        self.taken.append(Noticed(event, self.cause))

    def go_unused(self, job: Job, ends_at: datetime, count: int) -> None:
        """Note that people are told of the end of an attempt that nobody uses."""
        self.taken.append(WentUnused(job, ends_at, count, self.cause))

    def settle_outputs(self, left: tuple[Execution, ...]) -> None:
        """Note what has become of the outputs of an attempt."""
        self.taken.append(OutputsSettled(left, self.cause))

    def offer(self, job: Job, *, head: bool, refusal: str, before: str | None) -> None:
        """Note what came of a look for seats; `before`: why the job was refused when it was looked at last, if so."""
        first, other = bool(refusal) and before is None, bool(refusal) and before != refusal
        self.taken.append(Offered(job, head, refusal, first, self.cause, other))
