"""The records of the coordinator: frozen values; the store keeps exactly these."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from coordinator.core import checkpoint_part
from coordinator.core.bar_note import BarNote
from coordinator.core.checkpoint_part import CheckpointPart, DropCheckpoint
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.spent import Spent
from muster.domain.data.job_input import FoundInput
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.event import JobEvent, StoryEvent, StorySubject
from muster.domain.fleet.access import Project
from muster.domain.fleet.node import Cordon, Inventory
from muster.domain.fleet.pool import Pool, PortionRule
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window
from muster.domain.gangs.plan import Goal
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import Exit, Failure
from muster.domain.jobs.image import FoundImage
from muster.domain.jobs.interactive import NEVER_IDLE
from muster.domain.jobs.job import LOCAL_OWNER, JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.placing.taint import NodeTaint
from muster.domain.jobs.queueing.used_preset import UsedPreset
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was accepted. Its phase is derived from the executions of its newest attempt."""

    id: JobId
    spec: JobSpec
    """The job as it counts now; `submitted` is how it was asked for, if it was changed."""
    sequence: int
    """Counts submits up: first in, first out among equal priorities."""
    submitted_at: datetime
    owner: str = LOCAL_OWNER
    """The account that submitted it."""
    job_class: JobClass = JobClass.GUARANTEED
    """How surely it keeps what it gets; where it names none itself, it follows its project until it is placed."""
    idempotency_key: str = ""
    """Given by the client; the same key is the same submit."""
    attempt: int = 1
    """The number of the newest attempt."""
    evictions: int = 0
    """How often it was evicted for another job."""
    stop_requested_at: datetime | None = None
    stop_reason: str = ""
    """Why it was stopped, as the rest of a sentence; empty: it was not, or the user of `muster up` asked for it."""
    delete_when_ended: bool = False
    leaves_outputs: bool = False
    """Whether what its executions leave stays on their nodes, as somebody wants it to end at once."""
    gave_up: str = ""
    """Why there was no other attempt after a failure; empty if the job never asked for any."""
    ended_at: datetime | None = None
    holds: tuple[WaitReason, ...] = ()
    """What keeps an attempt that is not placed out of the queue, at most one of each kind; none: it is queued."""
    submitted: JobSpec | None = None
    """The job as it was asked for, if it was changed; None: it is as it was."""
    changes: int = 0
    """How often it was changed."""
    inputs: tuple[FoundInput, ...] = ()
    """What its inputs were found to hold, each URL once; it counts for all ranks and attempts."""
    images: tuple[FoundImage, ...] = ()
    """What the names of its images were found to mean, each name once; it counts for all ranks and attempts."""
    presets: tuple[UsedPreset, ...] = ()
    """The versions of presets with which it was made."""
    checkpoints: checkpoint_part.CheckpointMarks = checkpoint_part.NO_MARKS

    @property
    def attempt_id(self) -> AttemptId:
        """Names the newest attempt."""
        return AttemptId(self.id, self.attempt)

    def holds_but(self, *kinds: WaitKind) -> tuple[WaitReason, ...]:
        """What keeps it out of the queue beside these kinds."""
        return tuple(hold for hold in self.holds if hold.kind not in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedSeat:
    """Where one execution goes for which a seat is kept."""

    rank: int
    node: NodeId
    gpus: tuple[GpuUuid, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatClaim:
    """Seats that nobody else gets until an attempt is placed there: what is on them was ordered to stop."""

    made_at: datetime
    seats: tuple[ClaimedSeat, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One start of the whole gang, and how far the coordinator has let it go."""

    job: JobId
    number: int
    goal: Goal | None = None
    """The order that stands for all its executions; None before its placement."""
    not_before: datetime | None = None
    """The earliest time of its placement: a pause after a failure."""
    fenced_until: datetime | None = None
    """Until then the one before may still run on a node that was lost; not after `not_before`."""
    fence_noted_at: datetime | None = None
    """When it was last stored that this fence still stands; what is left from then on survives a restart."""
    queued_since: datetime | None = None
    """Since when it has been in the queue, as far as `queued_for` does not count it; None: it is not there."""
    queued_for: timedelta = timedelta()
    """How long it was in the queue before; what it waited outside does not count."""
    times_held: int = 0
    """How often it began to wait."""
    barred: BarNote | None = None
    """While it is the first of its project: the term that keeps it waiting, if others wait for that in the end."""
    avoid: NodeId | None = None
    """Where the attempt before failed; other nodes are preferred."""
    claim: SeatClaim | None = None
    """While it is queued: the seats that it gets once they are free; None: it is placed wherever there is room."""
    reserved: tuple[ClaimedSeat, ...] = ()
    """While it is the head of the queue: the seats that are kept for it; none: nothing is."""
    preempted_for: JobId | None = None
    """The job that gets what it had; None: it was not evicted."""
    placed_at: datetime | None = None
    pool: str = ""
    """The pool of its nodes when it was placed; empty before that."""
    metered_from: timedelta = timedelta()
    """What the meter of its project and pool said when it was placed."""
    longest_run: timedelta | None = None
    """How long user code might run in that pool then; None: as long as the job says."""
    longest_idle: timedelta | None = None
    """How long it may go unused by the terms of its project, if its job does not say so; zero: for ever."""
    enforce: PortionRule = PortionRule.TELL
    """What became of whoever used more GPU memory than its portion in that pool then."""
    over_portion: str = ""
    """Which rank was seen first to use more GPU memory than its portion, and how much; empty: none was."""
    deadline: datetime | None = None
    """Until when all must be armed; set at placement, does not slide."""
    checked_in_at: datetime | None = None
    """When the last one checked in."""
    released_at: datetime | None = None
    """When the last one was armed and all were let go."""
    started_at: datetime | None = None
    """When the last one ran."""
    saved_at: datetime | None = None
    """When a checkpoint was last whole: when user code told so, or its parts were stored; it never goes back."""
    checkpoints: checkpoint_part.AttemptCheckpoints = checkpoint_part.FROM_NOTHING
    ended_at: datetime | None = None
    failure: Failure | None = None
    """The first one; it ended the attempt."""
    executions_dropped: bool = False
    """Whether the store no longer has its executions, as its job has too many."""

    @property
    def attempt_id(self) -> AttemptId:
        """Names the attempt."""
        return AttemptId(self.job, self.number)

    def run_limit(self, of_job: timedelta | None) -> timedelta | None:
        """How long its user code may run, where its job says so much; None: it has no limit."""
        return min((limit for limit in (of_job, self.longest_run) if limit is not None), default=None)

    def idle_limit(self, of_job: timedelta | None) -> timedelta | None:
        """How long it may go unused, where its job says so much; None: for ever."""
        limit = self.longest_idle if of_job is None else of_job
        return None if limit == NEVER_IDLE else limit

    @property
    def placeable_since(self) -> datetime | None:
        """From when on this stay in the queue counts: the end of its pause, if that is later; None: it is not there."""
        if self.queued_since is None or self.not_before is None:
            return self.queued_since
        return max(self.queued_since, self.not_before)

    def queue_time(self, now: datetime) -> timedelta:
        """How long it has been in the queue and could be placed, all its stays together."""
        since = self.placeable_since
        return self.queued_for if since is None else self.queued_for + max(timedelta(), now - since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One worker of one attempt."""

    id: ExecutionId
    job: JobId
    attempt: int
    rank: int
    state: State = State.QUEUED
    times: Mapping[State, datetime] = field(default_factory=dict)
    """When it last entered each state that it was in, by the coordinator's clock; the last one is the present one."""
    node: NodeId | None = None
    gpus: tuple[GpuUuid, ...] = ()
    detail: str = ""
    address: str | None = None
    ports: tuple[PortLease, ...] = ()
    exit: Exit | None = None
    failure: Failure | None = None
    borrowed: timedelta = timedelta()
    """Once it has ended: how much of the time for which it held its GPUs counts as borrowed."""
    gpu_busy_ms: int | None = None
    """Milliseconds in which something ran on its GPUs, of all together, as its agent last told; None: it has not."""
    last_permit_at: datetime | None = None
    """Once its end is confirmed: when its agent can last have told a peer to go on without the coordinator."""
    silent_until: datetime | None = None
    """Lost: from when on its agent's last contact keeps nothing running."""
    surely_over: bool = False
    """Lost, but nothing of it runs: its node is back and says so, or an operator does."""
    condemned: bool = False
    """Ordered to stop because it is to blame: it will have failed when its end is confirmed."""
    log_complete: bool = False
    log_kept: bool = False
    """Whether there was a file of the log when it became complete; of silent executions there is none."""
    outputs: ExecutionOutputs | None = None
    """What it has left, once its user code has ended; None: nothing that its agent told of."""
    checkpoints: checkpoint_part.ExecutionCheckpoints = checkpoint_part.NOTHING_SAVED

    @property
    def attempt_id(self) -> AttemptId:
        """Names the attempt that it belongs to."""
        return AttemptId(self.job, self.attempt)

    @property
    def stores(self) -> bool:
        """Whether something that it left is on its way, so that its node is to keep that and its job to wait."""
        return self.checkpoints.storing or (self.outputs is not None and self.outputs.on_their_way)

    @property
    def stores_again(self) -> bool:
        """Whether its node is to store its outputs again, which its job does not wait for."""
        return self.outputs is not None and self.outputs.stage is OutputsStage.STORING_AGAIN

    def given_up(self, why: str) -> "Execution":
        """The same where nobody waits for the rest of its log, of its checkpoints and its outputs."""
        outputs = self.outputs
        if outputs is not None and (outputs.on_their_way or self.stores_again):
            outputs = replace(outputs, stage=OutputsStage.ON_NODE, why=why)
        checkpoints = replace(self.checkpoints, storing=False)
        return replace(self, log_complete=True, outputs=outputs, checkpoints=checkpoints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node that has joined; whether it is there right now is its lease, which is not stored."""

    name: NodeId
    identity: str
    address: str
    inventory: Inventory
    agent_version: str
    joined_at: datetime
    peer_port: int = 0
    """Where other agents ask its agent; 0: they cannot."""
    features: frozenset[str] = frozenset()
    """Words for what its agent can."""
    cordon: Cordon | None = None
    """Nothing new is placed on it; None: it takes jobs."""
    taints: tuple[NodeTaint, ...] = ()
    """What keeps jobs off it, in the order of keys and effects."""


Record = Job | Attempt | Execution | CheckpointPart | Node | Project | Window | Department | Pool | QuotaMeter


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Store this record in place of the one with the same key."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class DropJob:
    """Forget a job with its attempts and executions."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class DropExecutions:
    """Forget all executions of an attempt; the attempt itself stays."""

    job: JobId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropNode:
    """Forget a node."""

    node: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class DropProject:
    """Forget a project; ended jobs that were submitted there stay."""

    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropWindow:
    """Forget a window."""

    window: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPool:
    """Forget what was said of a pool."""

    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDepartment:
    """Forget a department."""

    department: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepEvent:
    """Store an event of a job after those that are there, unless one with its id is there already."""

    event: JobEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class DropEvents:
    """Forget the events of an attempt."""

    job: JobId
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepStoryEvent:
    """Store an event of a node or of the fleet after those that are there; as `KeepEvent`."""

    event: StoryEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimStory:
    """Forget all events of a node or of the fleet but the newest."""

    subject: StorySubject | None
    """None: those of all nodes and of the fleet together."""
    keep: int
    """Events that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepSpent:
    """Store what an attempt has held, unless it is stored already."""

    spent: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimSpent:
    """Forget what attempts have held, but for the newest so many."""

    keep: int


SpentChange = KeepSpent | TrimSpent
StoryChange = KeepStoryEvent | TrimStory

Drop = DropJob | DropExecutions | DropCheckpoint | DropNode | DropProject | DropDepartment | DropWindow | DropPool

Change = Put | Drop | KeepEvent | DropEvents | StoryChange | SpentChange
