"""What a client sees of jobs and nodes: the same values in SDK, CLI, REST and UI."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from muster.domain.failure import Exit, Failure
from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.job import JobSpec
from muster.domain.lifecycle import JobPhase, State
from muster.domain.node import Cordon, Inventory, NodeState
from muster.domain.roster import PortLease


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """An execution entered a state."""

    state: State
    at: datetime
    """By the coordinator's clock."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One start of the whole gang, with the times of its phases."""

    number: int
    placed_at: datetime | None = None
    checked_in_at: datetime | None = None
    released_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    failure: Failure | None = None
    executions: tuple[ExecutionView, ...] = ()
    """By rank; empty in lists."""


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
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: tuple[AttemptView, ...] = ()
    """Oldest first; in lists only the newest, without executions."""
    states: Mapping[State, int] = field(default_factory=dict)
    """How many executions of the newest attempt are in which state."""
    failure: Failure | None = None
    """The first failure of the newest attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node and what of it is given away."""

    name: NodeId
    state: NodeState
    address: str
    inventory: Inventory
    executions: tuple[ExecutionId, ...] = ()
    """Those that hold resources on it."""
    gpus_taken: tuple[GpuUuid, ...] = ()
    cpu_millis_taken: int = 0
    memory_taken: int = 0
    agent_version: str = ""
    last_seen_at: datetime | None = None
    """None: not since the coordinator started."""
    joined_at: datetime | None = None
    cordon: Cordon | None = None
    """Nothing new is placed on it; None: it takes jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRefusal:
    """Why one node cannot take an execution now."""

    node: NodeId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """An execution that the others wait for."""

    rank: int
    node: NodeId | None
    state: State
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job is where it is."""

    summary: str
    """A sentence or two."""
    phase: JobPhase
    queue_position: int = 0
    """1 for the head of the queue; 0: not queued."""
    refusals: tuple[NodeRefusal, ...] = ()
    awaited: tuple[Awaited, ...] = ()
    failure: Failure | None = None


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
