"""Why a job is where it is, as a client is told."""

from dataclasses import dataclass
from datetime import datetime

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
class PoolRefusal:
    """Why a job has no place in one pool."""

    pool: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpfulChange:
    """What would have a queued job placed now, if it had been submitted like that."""

    change: str
    """Key and value, as in a job file: `workers: 3`."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEstimate:
    """When a queued job may start."""

    about: datetime | None = None
    """If what runs takes as long as is expected of it, and no job comes that goes first; None: nobody knows."""
    latest: datetime | None = None
    """When the seats that are kept for it are free by run limits alone; None: something there has none."""


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
    pools: tuple[PoolRefusal, ...] = ()
    """What each pool lacks for a queued job that may lie in several."""
    changes: tuple[HelpfulChange, ...] = ()
    """What would help a queued job now."""
    estimate: StartEstimate = StartEstimate()
