"""What a client sees of jobs: the same values in SDK, CLI, REST and UI. Of nodes: `node`; why: `explanation`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from muster.domain.data.outputs import ExecutionOutputs
from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import Exit, Failure
from muster.domain.jobs.image import FoundImage
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.member import PortLease
from muster.domain.jobs.queueing.used_preset import UsedPreset
from muster.domain.jobs.queueing.waiting import WaitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """An execution entered a state."""

    state: State
    at: datetime
    """The time by the coordinator's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionView:
    """One worker of an attempt."""

    id: ExecutionId
    rank: int
    role: str
    state: State
    node: NodeId | None = None
    """None before placement."""
    gpus: tuple[GpuUuid, ...] = ()
    detail: str = ""
    """What it is doing, for people."""
    address: str | None = None
    """Where peers reach it; None before check-in."""
    ports: tuple[PortLease, ...] = ()
    failure: Failure | None = None
    exit: Exit | None = None
    transitions: tuple[Transition, ...] = ()
    """Oldest first."""
    log_complete: bool = False
    outputs: ExecutionOutputs | None = None
    """What it has left; None: nothing, or its user code has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One start of the whole gang, with the times of its phases."""

    number: int
    placed_at: datetime | None = None
    checked_in_at: datetime | None = None
    released_at: datetime | None = None
    started_at: datetime | None = None
    saved_at: datetime | None = None
    """When user code last told that a checkpoint is whole; None: it never has."""
    ended_at: datetime | None = None
    failure: Failure | None = None
    executions: tuple[ExecutionView, ...] = ()
    """The executions by rank; empty in lists, and where the coordinator has them in its database alone: ask for this
    attempt.
    """
    executions_dropped: bool = False
    """Whether they were dropped, as the job has too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job."""

    id: JobId
    """Empty for a dry run."""
    spec: JobSpec
    phase: JobPhase
    summary: str
    """One line: what it is doing or how it ended."""
    submitted_at: datetime
    owner: str = ""
    """The account that submitted it; `local` under `muster up`."""
    sequence: int = 0
    """The number of the job in its fleet: 1 for the first one; 0 for a dry run."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: tuple[AttemptView, ...] = ()
    """Oldest first; in lists only the newest, without executions."""
    states: Mapping[State, int] = field(default_factory=dict)
    """How many executions of the newest attempt are in which state."""
    failure: Failure | None = None
    """The first failure of the newest attempt."""
    reasons: tuple[WaitReason, ...] = ()
    """What keeps it out of the queue while it waits, and what will where it is being suspended."""
    images: tuple[FoundImage, ...] = ()
    """What the names of its images were found to mean, for all ranks and attempts; none: nobody has looked yet."""
    presets: tuple[UsedPreset, ...] = ()
    """The versions of presets with which it was made."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Which preset says what, by key of the job file; told for a dry run alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """A part of a list of jobs, and where the next one is."""

    jobs: tuple[JobView, ...] = ()
    """The newest first, without their executions."""
    next_page: str = ""
    """Given back for the next page; empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A piece of output of one rank."""

    rank: int
    stream: str
    """`stdout` or `stderr`."""
    time: datetime
    text: bytes
    partial: bool = False
    """Whether the line goes on in the next record of this rank and stream."""
    attempt: int = 1
