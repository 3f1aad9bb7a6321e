"""Why a job is where it is, as a client is told."""

from dataclasses import dataclass

from muster.domain.ids import NodeId
from muster.domain.jobs.failure import Failure
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.queueing.waiting import WaitReason


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
    reasons: tuple[WaitReason, ...] = ()
    """What keeps a waiting job out of the queue."""
