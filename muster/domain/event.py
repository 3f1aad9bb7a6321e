"""Events: what happened to a job, a node or the fleet, told to people; one vocabulary for all who tell of it.

The id of an event follows from what it says, so whoever is told twice can know it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NewType, Protocol

from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.lifecycle import JobPhase


class JobEventKind(StrEnum):
    """What can happen to a job; its CloudEvents type is `muster.job.` and this word."""

    SUBMITTED = "submitted"  #: accepted; its first attempt is in the queue, or waits
    WAITING = "waiting"  #: something keeps its attempt out of the queue
    QUEUED = "queued"  #: a later attempt is in the queue, or one that has waited
    CHANGED = "changed"  #: it is other than it was submitted
    NO_ROOM = "no_room"  #: the scheduler looked for seats in vain, for the first time in this attempt
    CLAIMED = "claimed"  #: it gets seats that others are leaving, for the first time in this attempt
    PLACED = "placed"  #: the whole gang has its nodes
    PREPARING = "preparing"  #: the first agent has begun: image, directories, ports
    CHECKED_IN = "checked_in"  #: all executions are prepared
    RELEASED = "released"  #: all executions are armed, and all were told to start
    RUNNING = "running"  #: user code runs in all executions
    GPU_MEMORY = "gpu_memory"  #: an execution uses more GPU memory than its portion, for the first time in this attempt
    RANK_DIFFERS = "rank_differs"  #: a rank is unlike the others of its role; told by a console that watches gangs
    IDLE = "idle"  #: nobody has used it for long, and it is about to be stopped
    RESTORING = "restoring"  #: a later attempt has its nodes: the checkpoint that it begins with, or why it has none
    CHECKPOINTED = "checkpointed"  #: a checkpoint is whole: all ranks have stored their part
    CHECKPOINT_BAD = "checkpoint_bad"  #: no attempt begins with a checkpoint any more, as two in a row failed at once
    EXITED = "exited"  #: executions have ended; one event for those that ended alike at one time
    STOPPING = "stopping"  #: what still runs was told to stop
    OUTPUTS_STORED = "outputs_stored"  #: what the attempt has left is in the depot, as far as it could be stored
    OUTPUTS_LOST = "outputs_lost"  #: something that the attempt has left is not in the depot
    ATTEMPT_FAILED = "attempt_failed"  #: the attempt has ended badly, and another one follows
    SUCCEEDED = "succeeded"  #: the job ended well
    FAILED = "failed"  #: the job failed
    STOPPED = "stopped"  #: the job was stopped
    DELETED = "deleted"  #: the job is there no longer, nor is its story; told by a console that has seen it

    @property
    def ends_job(self) -> bool:
        """Whether it is the last event of a job."""
        return self in _ENDS


_COMING_AGAIN = {
    JobEventKind.IDLE,
    JobEventKind.WAITING,
    JobEventKind.QUEUED,
    JobEventKind.CHANGED,
    JobEventKind.RANK_DIFFERS,
    JobEventKind.CHECKPOINTED,
}
"""Kinds of events that one attempt can have several of."""
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
        when = f"/{self.again}" if self.again else ""
        return f"job/{self.job}/{self.attempt}/{self.kind}{place}{when}"

    @property
    def again(self) -> int:
        """What tells it from others of its kind in one attempt: its time in microseconds; 0: it comes only once."""
        return _microseconds(self.at) if self.kind in _COMING_AGAIN else 0


StorySubject = NewType("StorySubject", str)
"""The subject of a story that is no job's: `fleet`, or `node/` and the name of a node."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FLEET_SUBJECT = StorySubject("fleet")


def node_subject(node: NodeId) -> StorySubject:
    """The subject of the story of a node."""
    return StorySubject(f"node/{node}")


class NodeEventKind(StrEnum):
    """What can happen to a node; its CloudEvents type is `muster.node.` and this word."""

    JOINED = "joined"  #: its agent connected for the first time
    UNREACHABLE = "unreachable"  #: its stream ended, or it was silent past its lease
    BACK = "back"  #: it was unreachable or lost, and is connected again
    LOST = "lost"  #: it was silent for so long that what it ran counts as lost
    CORDONED = "cordoned"  #: an operator wants nothing new placed on it
    DRAINING = "draining"  #: what runs there begins anew elsewhere, because of an operator or of a taint
    DRAINED = "drained"  #: it is cordoned, and nothing runs there any more
    UNCORDONED = "uncordoned"  #: it takes jobs again
    TAINTED = "tainted"  #: an operator has given it other taints
    INVENTORY_CHANGED = "inventory_changed"  #: it has other hardware, software or labels than before
    GPU_FAULT = "gpu_fault"  #: GPUs have problems that they did not have, so nothing is placed on them
    GPU_BACK = "gpu_back"  #: GPUs have no problems any more
    REMOVED = "removed"  #: an operator has given it up

    @property
    def words(self) -> str:
        """What happened, for people, as the beginning of a sentence about a node that is known from elsewhere."""
        return _NODE_WORDS[self]


_NODE_WORDS: Mapping[NodeEventKind, str] = {
    NodeEventKind.JOINED: "node has joined",
    NodeEventKind.UNREACHABLE: "node is unreachable",
    NodeEventKind.BACK: "node is back",
    NodeEventKind.LOST: "node is lost",
    NodeEventKind.CORDONED: "node is cordoned",
    NodeEventKind.DRAINING: "jobs of the node begin anew elsewhere",
    NodeEventKind.DRAINED: "nothing runs on the node any more",
    NodeEventKind.UNCORDONED: "node takes jobs again",
    NodeEventKind.TAINTED: "node has other taints",
    NodeEventKind.INVENTORY_CHANGED: "node has changed",
    NodeEventKind.GPU_FAULT: "node has GPUs with new problems",
    NodeEventKind.GPU_BACK: "node has GPUs without problems again",
    NodeEventKind.REMOVED: "node was removed",
}


class FleetEventKind(StrEnum):
    """What can happen to the whole fleet; its CloudEvents type is `muster.fleet.` and this word."""

    COORDINATOR_STARTED = "coordinator_started"  #: the coordinator was started, and serves
    RESTORED = "restored"  #: its records were restored from a backup
    AUTHORITY_ROTATING = "authority_rotating"  #: nodes learn the next authority
    AUTHORITY_ROTATED = "authority_rotated"  #: the former authority counts no more
    DEPOT_SWEPT = "depot_swept"  #: the depot has removed what no job names any more
    PROJECT_ADDED = "project_added"  #: there is a new project
    PROJECT_CHANGED = "project_changed"  #: a project is opened for something else, or may keep more or less
    PROJECT_REMOVED = "project_removed"  #: a project is there no longer
    WINDOW_SET = "window_set"  #: nodes will be out of service, or for one project alone
    WINDOW_REMOVED = "window_removed"  #: an admin has removed a window
    WINDOW_ENDED = "window_ended"  #: the end of a window has come
    POOL_SET = "pool_set"  #: other nodes may be in a pool, or something else holds there
    POOL_REMOVED = "pool_removed"  #: nothing is said of a pool any longer
    DELIVERY_FAILING = "delivery_failing"  #: the target of a subscription has not taken events for some tries
    QUOTA_REACHED = "quota_reached"  #: a project holds all that its quota gives it; told by a console that looks at it
    COORDINATOR_AWAY = "coordinator_away"  #: a console has not heard the coordinator for a while, and tells so
    COORDINATOR_BACK = "coordinator_back"  #: a console hears the coordinator again

    @property
    def words(self) -> str:
        """What happened, for people, as the beginning of a sentence."""
        return _FLEET_WORDS[self]


_FLEET_WORDS: Mapping[FleetEventKind, str] = {
    FleetEventKind.COORDINATOR_STARTED: "coordinator was started",
    FleetEventKind.RESTORED: "fleet was restored from a backup",
    FleetEventKind.AUTHORITY_ROTATING: "authority is being changed",
    FleetEventKind.AUTHORITY_ROTATED: "former authority counts no more",
    FleetEventKind.DEPOT_SWEPT: "depot has removed what no job names",
    FleetEventKind.PROJECT_ADDED: "project was added",
    FleetEventKind.PROJECT_CHANGED: "project is opened for something else, or may keep more or less",
    FleetEventKind.PROJECT_REMOVED: "project was removed",
    FleetEventKind.WINDOW_SET: "window was set",
    FleetEventKind.WINDOW_REMOVED: "window was removed",
    FleetEventKind.WINDOW_ENDED: "window is over",
    FleetEventKind.POOL_SET: "pool was set",
    FleetEventKind.POOL_REMOVED: "pool was removed",
    FleetEventKind.DELIVERY_FAILING: "target of a subscription takes no events",
    FleetEventKind.QUOTA_REACHED: "project has reached its quota",
    FleetEventKind.COORDINATOR_AWAY: "coordinator is away",
    FleetEventKind.COORDINATOR_BACK: "coordinator is back",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """Something happened to a node."""

    node: NodeId
    kind: NodeEventKind
    at: datetime
    """The time by the coordinator's clock."""
    text: str = ""
    """Why, where there is more to say than the words of the kind do."""
    by: str = ""
    """The account that asked for it; empty where nobody did."""
    cause: str = ""
    """The call, the message of an agent or the deadline that made it happen."""
    number: int = 0
    """The event's place among all events of nodes and of the fleet; 0: not stored yet."""

    @property
    def subject(self) -> StorySubject:
        """The story that it belongs to."""
        return node_subject(self.node)

    @property
    def sentence(self) -> str:
        """What happened and why, for people who know the node."""
        return f"{self.kind.words}: {self.text}" if self.text else self.kind.words

    @property
    def id(self) -> str:
        """The same for whoever tells this event, however often."""
        return f"{self.subject}/{self.kind}/{_microseconds(self.at)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetEvent:
    """Something happened to the fleet."""

    kind: FleetEventKind
    at: datetime
    """The time by the coordinator's clock."""
    project: str = ""
    """The project that it is about; empty: none."""
    text: str = ""
    """More than the words of the kind say, where there is more to say."""
    by: str = ""
    """The account that asked for it; empty where nobody did."""
    cause: str = ""
    """The call that made it happen; empty where none did."""
    number: int = 0
    """The event's place among all events of nodes and of the fleet; 0: not stored yet."""

    @property
    def subject(self) -> StorySubject:
        """The story that it belongs to."""
        return FLEET_SUBJECT

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        more = ", ".join(filter(None, (self.project, self.text)))
        return f"{self.kind.words}: {more}" if more else self.kind.words

    @property
    def id(self) -> str:
        """The same for whoever tells this event, however often."""
        project = f"/{self.project}" if self.project else ""
        return f"{FLEET_SUBJECT}/{self.kind}{project}/{_microseconds(self.at)}"


class NumberedEvent(Protocol):
    """An event of whatever kind, with its place among others."""

    @property
    def number(self) -> int:
        """The place; grows from one event of a story to the next."""
        ...


StoryEvent = NodeEvent | FleetEvent
"""An event that belongs to no job."""


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
