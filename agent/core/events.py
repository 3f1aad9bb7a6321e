"""What happened on the node: the only inputs of the agent's core. Facts, in the past tense."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.core.terms import Terms
from muster.domain.gangs.plan import Plan
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.failure import Exit, FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReceived:
    """The coordinator wants something."""

    plan: Plan
    stream: int = 0
    """Which of the agent's streams it came on: revisions count within one, and each begins with a whole plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    """The preparation of an execution got further."""

    execution: ExecutionId
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Image there, directories made, ports held."""

    execution: ExecutionId
    address: str
    ports: tuple[PortLease, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """Only the start is missing."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """User code was started."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFailed:
    """An execution could not be prepared, armed or started."""

    execution: ExecutionId
    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """User code ended."""

    execution: ExecutionId
    exit: Exit
    log_tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Halted:
    """An order to stop was carried out; if user code ran, Exited says how it ended."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The node was cut off for so long that user code has to be stopped, or must not start."""

    execution: ExecutionId
    grace: timedelta
    """What is left until it must be dead; at most the job's own."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCompleted:
    """The coordinator has every line of an execution."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Nothing of an execution is left on the node."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """An execution of before a restart of the agent was found."""

    execution: ExecutionId
    started: bool
    """Whether user code was started, whether or not it still runs."""
    ended: bool = False
    """Whether it is known to have ended; how comes as Exited. False also where nobody can tell yet."""
    address: str | None = None
    ports: tuple[PortLease, ...] = ()
    started_at: datetime | None = None
    """None where it is not known."""
    terms: Terms | None = None
    """None where they were not noted."""
    fenced: str = ""
    """Why a former agent, or the keeper, stopped it; empty: neither did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFaulted:
    """The driver reported an Xid."""

    gpu: GpuUuid
    index: int | None
    """Its number on the node; None where that is not known."""
    message: str
    """For people: `Xid 79: GPU has fallen off the bus`."""
    own: bool
    """Whether it is the GPU's own fault; False: the program's that uses it, or none that ends a program."""


Event = (
    PlanReceived
    | Progressed
    | Prepared
    | Armed
    | Started
    | ActionFailed
    | Exited
    | Halted
    | Fenced
    | LogCompleted
    | Removed
    | Recovered
    | GpuFaulted
)
