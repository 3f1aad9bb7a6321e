"""What coordinator and agent say to each other: desired executions down, reports up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from muster.domain.data.checkpoint import CheckpointToRestore, ToldCheckpoints
from muster.domain.data.outputs import ExecutionOutputs
from muster.domain.fleet.pool import PortionRule
from muster.domain.fleet.secret import Handover
from muster.domain.gangs.fence import Fence
from muster.domain.gangs.roster import PortLease, Roster
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId
from muster.domain.jobs.failure import Exit, Failure
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import Framework, processes_of
from muster.domain.jobs.interactive import Interactive, MainProgramStreams
from muster.domain.jobs.job import DEFAULT_PROJECT, Network, Role, Timeouts
from muster.domain.jobs.placeholders import EarlyValues
from muster.domain.jobs.placing.portion import GpuShare
from muster.domain.jobs.stopping.notice import StopOrder
from muster.domain.jobs.stopping.preemption import PreemptSignal

MOST_BUSY = 1 << 53
"""Milliseconds of GPUs that one execution can have been busy; more is nobody's, and would not fit into databases."""


class Goal(IntEnum):
    """How far the coordinator wants an execution to go; it only rises. The gaps leave room for goals to come."""

    PREPARE = 10
    ARM = 20
    RUN = 30
    STOP = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One execution as its node gets it: everything that is needed to prepare it."""

    execution: ExecutionId
    job: JobId
    job_name: str
    attempt: int
    rank: int
    world_size: int
    local_rank: int
    """The place among the executions of this attempt on the same node, by rank."""
    local_world_size: int
    node_rank: int
    """The place of its node among the nodes of this attempt, in rank order."""
    node_count: int
    role: Role
    network: Network
    role_rank: int = 0
    """The place among the executions of its role in this attempt, by rank."""
    role_size: int = 1
    """How many these are."""
    sequence: int = 1
    """The number of the job in its fleet."""
    project: str = DEFAULT_PROJECT
    framework: Framework | None = None
    dialects: tuple[Dialect, ...] = ()
    gang_commands: bool = False
    """Whether user code may run commands in the other executions."""
    interactive: Interactive | None = None
    main_program: MainProgramStreams | None = None
    """What its main program has for people who attach; None: it reads nothing, and has no terminal."""
    idle: timedelta | None = None
    """How long the attempt may go unused, so that its agents tell of use; None: nobody needs to know of it."""
    gpus: tuple[GpuUuid, ...] = ()
    gpu_share: GpuShare | None = None
    """What it has of each of its GPUs, of the one with the least memory; None: they are its own."""
    enforce: PortionRule = PortionRule.TELL
    """What becomes of it where it uses more of their memory than that."""
    grace: timedelta = timedelta(seconds=10)
    fetch: timedelta = Timeouts().fetch
    """How long all its inputs may take."""
    stall: timedelta = Timeouts().stall
    """How long an input may go without a byte."""
    preempt_signal: PreemptSignal = PreemptSignal.TERM
    """What user code gets first where its job comes back after the stop."""
    saves: bool = False
    """Whether what it saves is stored for the next attempt."""
    restore: CheckpointToRestore | None = None
    """What it finds of what an attempt before has saved; None: nothing."""
    fence: Fence = field(default_factory=Fence)

    @property
    def attempt_id(self) -> AttemptId:
        """Names the attempt that it belongs to."""
        return AttemptId(self.job, self.attempt)

    @property
    def early_values(self) -> EarlyValues:
        """What is known of it before it has its data."""
        return EarlyValues(
            job=self.job,
            project=self.project,
            attempt=self.attempt,
            role=self.role.name,
            role_rank=self.role_rank,
            rank=self.rank,
            world_size=self.world_size,
        )

    @property
    def processes(self) -> int:
        """How many processes user code has in this execution."""
        return processes_of(self.framework, self.role.resources.gpus)

    @property
    def only_waits(self) -> bool:
        """Whether its command is not run, as rank 0 starts what runs in it."""
        return self.rank > 0 and self.framework is not None and self.framework.starts_elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """One line of a plan: an execution and how far it shall go."""

    execution: ExecutionId
    goal: Goal
    assignment: Assignment | None = None
    """There whenever the agent may not have it yet: with goal PREPARE or `store_again`, and in whole plans."""
    stop: StopOrder | None = None
    """Why it is to be stopped and how long it has, with goal STOP; None: its assignment's grace counts."""
    cause: str = ""
    """Why this line is sent, for the agent's journal: the call, message or deadline that the coordinator acted on."""
    store_again: int = 0
    """How often somebody has asked to have the outputs of an execution that is over stored again; 0: nobody has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A line of a plan that its agent could not read; the rest of the plan counts all the same."""

    execution: ExecutionId
    goal: Goal
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The desired executions of a node, whole or as a change of the plan before.

    An agent applies a change only to the revision it builds on, so a lost or repeated plan does no harm:
    its heartbeats tell which revision it has, and the coordinator sends the whole plan again.
    """

    revision: int
    base: int = 0
    """The revision that this one changes; 0: this is the whole plan, and what it does not list must go."""
    desired: tuple[Desired, ...] = ()
    rosters: tuple[Roster, ...] = ()
    """One per attempt that is to be armed; in whole plans also of those that are further."""
    removed: tuple[ExecutionId, ...] = ()
    """No longer wanted: stop it if need be and clear it away."""
    unreadable: tuple[Unreadable, ...] = ()
    """Executions that are listed, but whose lines could not be read; never sent."""


class Stage(StrEnum):
    """How far an agent has brought an execution."""

    PREPARING = "preparing"
    PREPARED = "prepared"
    ARMED = "armed"
    RUNNING = "running"
    EXITED = "exited"  #: user code ran and ended; `exit` says how
    FAILED = "failed"  #: it could not be prepared, armed or started; `failure` says why
    STOPPED = "stopped"  #: told to stop before user code ran; nothing of it is left running


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an agent says about one execution; the whole truth each time, so that repeating it does no harm."""

    execution: ExecutionId
    stage: Stage
    at: datetime
    """When it came to this stage, by the node's clock."""
    detail: str = ""
    """What it is doing, for people: `pulling image 41 %`."""
    address: str | None = None
    """From PREPARED on: where peers reach it."""
    ports: tuple[PortLease, ...] = ()
    started_at: datetime | None = None
    exit: Exit | None = None
    failure: Failure | None = None
    log_complete: bool = False
    """True once the coordinator has acknowledged every line that it printed."""
    no_permit_for: timedelta | None = None
    """How long before this report its agent has surely told no peer of the attempt to go on; None: not known."""
    used_at: datetime | None = None
    """When it was last used, by the node's clock; None: not since its agent started, or nobody needs to know of it."""
    saved_at: datetime | None = None
    """When user code last told that a checkpoint is whole, by the node's clock; None: it has not."""
    gpu_busy_ms: int | None = None
    """Milliseconds in which something ran on its GPUs, of all of them together; None: they do not tell."""
    outputs: ExecutionOutputs | None = None
    """What its user code has left, once that has ended; None: nothing."""
    over_portion: str = ""
    """How much more GPU memory than its portion it was seen to use, as a sentence without a subject; empty: never."""
    checkpoints: ToldCheckpoints | None = None
    """What it has saved; None: its job saves nothing, or nothing is known of it yet."""


LAUNCH_PROGRAMS = "bin"
"""The directory of the programs of a launch, below the configuration directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What an agent writes when it arms an execution."""

    env: Mapping[str, str]
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables that count where neither the image nor `env` sets them."""
    config_files: Mapping[str, bytes] = field(default_factory=dict)
    """Name in the configuration directory → content."""
    programs: Mapping[str, bytes] = field(default_factory=dict)
    """Name of a program that user code finds first in PATH → content."""
    role: Role | None = None
    """What runs, with values in place of placeholders; None: the role of the assignment, as it is."""
    host_names: Mapping[str, str] = field(default_factory=dict)
    """Host name → address, for names without DNS."""
    secrets: Handover = field(default_factory=Handover)
    """What an execution gets of its project's secrets."""
    ticket: str = field(default="", repr=False)
    """What the companion shows at the door, which starts commands in the execution; empty: there is none."""
    main_program: "AttendedStart | None" = None
    """How the main program is started where people can talk to it; None: as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendedStart:
    """A main program with a parent, which lends its terminal or its input to the agent."""

    streams: MainProgramStreams
    ticket: str = field(repr=False)
    """What its parent shows at the door."""
