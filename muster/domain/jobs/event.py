"""Events: what happened to a job, told to people; one vocabulary for command line, SDK and console.

The id of an event follows from what it says, so whoever is told twice can know it.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.lifecycle import JobPhase


class JobEventKind(StrEnum):
    """What can happen to a job; its CloudEvents type is `muster.job.` and this word."""

    SUBMITTED = "submitted"  #: accepted; its first attempt is in the queue
    QUEUED = "queued"  #: a later attempt is in the queue
    NO_ROOM = "no_room"  #: the scheduler looked for seats in vain, for the first time in this attempt
    PLACED = "placed"  #: the whole gang has its nodes
    PREPARING = "preparing"  #: the first agent has begun: image, directories, ports
    CHECKED_IN = "checked_in"  #: all executions are prepared
    RELEASED = "released"  #: all executions are armed, and all were told to start
    RUNNING = "running"  #: user code runs in all executions
    EXITED = "exited"  #: executions have ended; one event for those that ended alike at one time
    STOPPING = "stopping"  #: what still runs was told to stop
    ATTEMPT_FAILED = "attempt_failed"  #: the attempt has ended badly, and another one follows
    SUCCEEDED = "succeeded"  #: the job ended well
    FAILED = "failed"  #: the job failed
    STOPPED = "stopped"  #: the job was stopped

    @property
    def ends_job(self) -> bool:
        """Whether it is the last event of a job."""
        return self in _ENDS


_ENDS = {JobEventKind.SUCCEEDED, JobEventKind.FAILED, JobEventKind.STOPPED}

END_OF: dict[JobPhase, JobEventKind] = {
    JobPhase.SUCCEEDED: JobEventKind.SUCCEEDED,
    JobPhase.FAILED: JobEventKind.FAILED,
    JobPhase.STOPPED: JobEventKind.STOPPED,
}
"""The event that says how a job ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """Something happened to a job."""

    job: JobId
    attempt: int
    kind: JobEventKind
    at: datetime
    """The time by the coordinator's clock."""
    text: str
    """One sentence for people, without job and attempt."""
    rank: int | None = None
    """The lowest rank that it concerns; None: it concerns the whole attempt."""
    ranks: str = ""
    """All ranks that it concerns, as `0-3,7`; empty: the whole attempt."""
    nodes: tuple[NodeId, ...] = ()
    """Nodes that it concerns; of very many the first ones."""
    by: str = ""
    """The account that asked for it; empty where nobody did."""
    cause: str = ""
    """The call, the message of an agent or the deadline that made it happen."""
    number: int = 0
    """The event's place among all events of the coordinator; 0: not stored yet."""

    @property
    def id(self) -> str:
        """The same for whoever tells this event, however often."""
        place = "" if self.rank is None else f"/{self.rank}"
        return f"job/{self.job}/{self.attempt}/{self.kind}{place}"
