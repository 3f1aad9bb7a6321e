"""What clients want of the data of jobs, and what nodes find out about it; facts, as all events are."""

from dataclasses import dataclass

from coordinator.core.causes import UNKNOWN_CAUSE, EventCause
from muster.domain.data.checkpoint import CheckpointId, CheckpointOrder
from muster.domain.data.code import GitCode, JobCode
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.image import FoundImage


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointOrdered:
    """A client wants a checkpoint of a job kept, kept no longer, or removed."""

    job: JobId
    checkpoint: CheckpointId
    order: CheckpointOrder
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsRetried:
    """A client wants outputs of an attempt that are not in the depot stored again."""

    attempt: AttemptId
    ranks: tuple[int, ...]
    """What of them cannot be stored again stays as it is."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFound:
    """A node has found out which image a name means that a job has."""

    job: JobId
    found: FoundImage
    """An image of the job, as the edge has checked."""
    cause: EventCause = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFetched:
    """A node has fetched the code of a job from its repository, and the depot has it."""

    job: JobId
    asked: GitCode
    """The code as the job names it."""
    found: JobCode
    """The same with its commit and its tree."""
    cause: EventCause = UNKNOWN_CAUSE
