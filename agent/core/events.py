"""What happened on the node: the only inputs of the agent's core. Facts, in the past tense."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.core.terms import Terms
from muster.domain.data.checkpoint import ToldCheckpoints
from muster.domain.data.outputs import ExecutionOutputs
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Plan
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.stopping.notice import StopNotice


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
    in_setup: bool = False
    """Whether the setup of an interactive job failed, so that its main program was never started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Somebody, or the program itself, was seen to use an execution."""

    execution: ExecutionId
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusBusy:
    """The GPUs of an execution told how busy they are."""

    execution: ExecutionId
    milliseconds: int
    """Time in which something ran on them by now, of all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """User code has told that a checkpoint is whole."""

    execution: ExecutionId
    at: datetime
    """When, by the node's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingFound:
    """An execution of before a restart of the agent was being stopped at that time."""

    execution: ExecutionId
    notice: StopNotice
    """What user code was told."""


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
class VolumeOutgrown:
    """A volume of an execution has grown beyond its size."""

    execution: ExecutionId
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PortionOutgrown:
    """An execution has used more GPU memory than its portion for too long."""

    execution: ExecutionId
    message: str
    """How much, as a sentence without a subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCompleted:
    """The coordinator has every line of an execution."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsSeen:
    """User code that ends, or has ended, has left something, or what it has left got further."""

    execution: ExecutionId
    outputs: ExecutionOutputs


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsSeen:
    """What an execution saves got further."""

    execution: ExecutionId
    checkpoints: ToldCheckpoints


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
    """Why a former agent, or the killer, stopped it; empty: neither did."""
    gpu_busy_ms: int | None = None
    """Milliseconds for which a former agent saw its GPUs busy; None: they did not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFaulted:
    """The driver reported an Xid."""

    gpu: GpuUuid
    index: int | None
    """The GPU's number on the node; None where that is not known."""
    message: str
    """A sentence for people: `Xid 79: GPU has fallen off the bus`."""
    own: bool
    """Whether it is the GPU's own fault; False: the program's that uses it, or none that ends a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """A life of the agent begins; every Recovered has come before."""

    noted: Mapping[ExecutionId, float]
    """The deadlines that the life before left on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """The coordinator has acknowledged a Hello or a heartbeat."""

    sent_at: float
    """When that was put on the wire, or before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnected:
    """The stream to the coordinator has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeersAnswered:
    """A round of questions is over."""

    attempt: AttemptId
    asked_at: float
    """When the question was handed out, before any of it was put on the wire."""
    words: Mapping[NodeId, PeerWord]
    """The answers by witness; a witness that did not answer is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerAsked:
    """A peer of an attempt wants to know whether this node hears the coordinator."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceTimePassed:
    """Time has passed."""


Observed = (
    Progressed
    | Prepared
    | Armed
    | Started
    | ActionFailed
    | Used
    | Saved
    | GpusBusy
    | StoppingFound
    | Exited
    | Halted
    | Fenced
    | VolumeOutgrown
    | PortionOutgrown
    | LogCompleted
    | OutputsSeen
    | CheckpointsSeen
    | Removed
)
"""Events about an execution that the agent knows."""

LedgerEvent = PlanReceived | GpuFaulted | Observed
"""Events that concern what the node runs."""

FenceEvent = Contact | Disconnected | PeersAnswered | FenceTimePassed
"""Events that concern how long user code may run without the coordinator."""

Event = Recovered | Began | LedgerEvent | FenceEvent | PeerAsked
"""Everything that `step` takes in."""
