"""What happened: the only inputs of the core. Facts, in the past tense."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from coordinator.core.causes import UNKNOWN_CAUSE, EventCause
from coordinator.core.data_events import CheckpointOrdered, CodeFetched, ImageFound, OutputsRetried
from muster.domain.data.job_input import FoundInput
from muster.domain.event import FleetEventKind
from muster.domain.fleet.access import Permissions
from muster.domain.fleet.node import Inventory
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.project_use import ProjectUse
from muster.domain.fleet.quota import UnitChange
from muster.domain.fleet.window import Window
from muster.domain.gangs.plan import Report
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.job import LOCAL_OWNER, JobSpec
from muster.domain.jobs.placing.taint import Taint, TaintName
from muster.domain.jobs.queueing.change import JobChange
from muster.domain.jobs.queueing.used_preset import UsedPreset


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    """A client asks for a job."""

    job: JobId
    """Made by the edge; taken only if the job is accepted."""
    spec: JobSpec
    owner: str = LOCAL_OWNER
    """The account of the client."""
    queue_anyway: bool = False
    dry_run: bool = False
    idempotency_key: str = ""
    presets: tuple[UsedPreset, ...] = ()
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsSubmitted:
    """A client asks for many jobs, all of them or none."""

    jobs: tuple[JobSubmitted, ...]
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested:
    """A client wants a job to stop."""

    job: JobId
    now: bool = False
    """Whether nobody is to wait for what it has left."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequested:
    """A client wants a job to be forgotten."""

    job: JobId
    force: bool = False
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRequested:
    """A client wants a job not to be placed until it is released; one that is placed is not held."""

    job: JobId
    by_operator: bool = False
    """Whether only operators may release it."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class UnholdRequested:
    """A client wants a job to be held no longer."""

    job: JobId
    by_operator: bool = False
    """Whether holds of operators go as well."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendRequested:
    """A client wants a job to give up what it has and to wait until it is resumed."""

    job: JobId
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequested:
    """A client wants a suspended job to go on."""

    job: JobId
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequested:
    """A client wants a job to be other than it was submitted."""

    job: JobId
    change: JobChange
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConnected:
    """An agent opened its stream."""

    node: NodeId
    session: int
    """Counts streams up; tells a new stream of a node from its old one."""
    identity: str
    version: str
    address: str
    inventory: Inventory
    reports: tuple[Report, ...] = ()
    """Every execution that the agent knows of."""
    logs_kept: Collection[ExecutionId] = frozenset()
    """Executions of these whose log is complete and in the log store."""
    peer_port: int = 0
    features: frozenset[str] = frozenset()
    """Words for what the agent can."""
    opened: int = 0
    """Grows from one stream of the agent to its next, by the agent's own count."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDisconnected:
    """The stream of an agent ended."""

    node: NodeId
    session: int
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReceived:
    """An agent is alive, and has applied plans up to a revision."""

    node: NodeId
    plan_revision: int
    session: int | None = None
    """The stream on which it came; None: the one that is open."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryChanged:
    """A node has other things than before."""

    node: NodeId
    inventory: Inventory
    session: int | None = None
    """The stream on which it came; None: the one that is open."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLabelled:
    """An operator has given a node labels, in place of those that it was given before."""

    node: NodeId
    labels: Mapping[str, str]
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionsReported:
    """News from a node about its executions."""

    node: NodeId
    reports: tuple[Report, ...]
    logs_kept: Collection[ExecutionId] = frozenset()
    """Executions in the reports whose log is complete and in the log store."""
    session: int | None = None
    """The stream on which it came; None: the one that is open."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class InputsFound:
    """A node has found what some inputs of a job hold."""

    job: JobId
    found: tuple[FoundInput, ...]
    """URLs of the job alone, as the edge has checked."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTooLarge:
    """What a node would have to be told of an attempt fits into no message; its executions there were told to stop."""

    node: NodeId
    job: JobId
    attempt: int
    message: str
    """One sentence for people: what is too large."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalRequested:
    """An operator says that a node will not come back, and that nothing runs there any more."""

    node: NodeId
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonRequested:
    """An operator wants nothing new placed on a node."""

    node: NodeId
    reason: str = ""
    restart_jobs: bool = False
    """Whether what runs there begins anew elsewhere, now."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class UncordonRequested:
    """An operator wants a node to take jobs again."""

    node: NodeId
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintsRequested:
    """An operator wants a node to have other taints."""

    node: NodeId
    given: tuple[Taint, ...] = ()
    removed: tuple[TaintName, ...] = ()
    """Taken away before the others are given."""
    after: timedelta = timedelta()
    """How long what runs there goes on in spite of taints with NoExecute that are given."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAdded:
    """An admin wants a project to be there."""

    name: str
    """Checked by the edge."""
    uses: tuple[ProjectUse, ...] = ()
    """What is left outside the core of an older project of that name."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectChanged:
    """An admin has said what a project is opened for, in place of what was said before."""

    name: str
    permissions: Permissions
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectStorageLimited:
    """An admin has said how much a project may keep in the depot."""

    name: str
    storage: int
    """Bytes."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRemoved:
    """An admin wants a project to be there no longer."""

    name: str
    uses: tuple[ProjectUse, ...] = ()
    """What uses it outside the core; whoever sends the event sees to it that nothing is added until the answer."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSet:
    """An admin wants nodes to be out of service, or for one project alone, in place of what was said before."""

    window: Window
    """Checked by the edge."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRemoved:
    """An admin wants a window to be there no longer."""

    name: str
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSet:
    """An admin says which nodes are in a pool and what holds there, in place of what was said before."""

    pool: Pool
    """Checked by the edge."""
    anyway: bool = False
    """Whether also where its selector takes no node yet."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRemoved:
    """An admin wants nothing to be said of a pool any longer."""

    name: str
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasChanged:
    """An admin has said what departments and projects may have, all of it or nothing."""

    changes: tuple[UnitChange, ...]
    """Checked by the edge as far as each change alone can be wrong."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChanged:
    """Something happened to the fleet that no record of the core holds."""

    kind: FleetEventKind
    project: str = ""
    """The project that it is about; empty: none."""
    text: str = ""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    """The earliest deadline may have come."""


Event = (
    JobSubmitted
    | JobsSubmitted
    | StopRequested
    | DeleteRequested
    | CheckpointOrdered
    | OutputsRetried
    | HoldRequested
    | UnholdRequested
    | SuspendRequested
    | ResumeRequested
    | ChangeRequested
    | NodeConnected
    | NodeDisconnected
    | HeartbeatReceived
    | InventoryChanged
    | NodeLabelled
    | ExecutionsReported
    | InputsFound
    | CodeFetched
    | ImageFound
    | PlanTooLarge
    | RemovalRequested
    | CordonRequested
    | UncordonRequested
    | TaintsRequested
    | ProjectAdded
    | ProjectChanged
    | ProjectStorageLimited
    | ProjectRemoved
    | QuotasChanged
    | WindowSet
    | WindowRemoved
    | PoolSet
    | PoolRemoved
    | FleetChanged
    | TimePassed
)
