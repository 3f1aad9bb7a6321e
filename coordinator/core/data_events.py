"""What clients want of the data of jobs, and what nodes find out about it; facts, as all events are."""

from dataclasses import dataclass

from coordinator.core.causes import UNKNOWN_CAUSE, EventCause
from muster.domain.data.checkpoint import CheckpointId, CheckpointOrder
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
