"""Records of checkpoints: which parts the depot has, and what jobs, attempts and executions have to do with them.

Which checkpoint is whole follows from the parts, and is stored nowhere.
"""

from dataclasses import dataclass
from datetime import datetime

from muster.domain.data.checkpoint import CheckpointId
from muster.domain.ids import JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPart:
    """What one rank has saved of a checkpoint, and the depot keeps."""

    job: JobId
    attempt: int
    name: str
    rank: int
    number: int
    """Counts up over all parts of the rank in this attempt."""
    tree: str
    """SHA-256 of its content tree; empty: the rank has written it anew, so that it belongs to no whole checkpoint."""
    size: int
    """Bytes of the canonical form of the tree."""
    files: int
    bytes: int
    at: datetime
    """When the coordinator heard of it."""

    @property
    def id(self) -> CheckpointId:
        """The checkpoint that it belongs to."""
        return CheckpointId(self.attempt, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMarks:
    """What is said of checkpoints of a job."""

    pinned: tuple[CheckpointId, ...] = ()
    """Checkpoints that stay until somebody unpins them."""
    bad: tuple[CheckpointId, ...] = ()
    """Checkpoints with which no attempt begins any more."""

    def without(self, checkpoint: CheckpointId) -> "CheckpointMarks":
        """The same once a checkpoint is gone."""
        return CheckpointMarks(
            pinned=tuple(each for each in self.pinned if each != checkpoint),
            bad=tuple(each for each in self.bad if each != checkpoint),
        )


NO_MARKS = CheckpointMarks()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCheckpoints:
    """What an attempt began with, and what it has saved."""

    restores: CheckpointId | None = None
    """What its executions find, chosen when it was placed; None: nothing."""
    whole: int = 0
    """How many of its own have become whole."""
    newest: str = ""
    """The one that became whole last."""


FROM_NOTHING = AttemptCheckpoints()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionCheckpoints:
    """What is known of the checkpoints of an execution, beside its parts."""

    told: int = 0
    """The highest number of a part that its agent has told of; those up to it are known, or were removed."""
    storing: bool = False
    """Whether user code has ended and parts are on their way, so that the next attempt waits."""
    trouble: str = ""
    """Why its newest one cannot be stored, as its agent says."""


NOTHING_SAVED = ExecutionCheckpoints()


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCheckpoint:
    """Forget all parts of a checkpoint."""

    job: JobId
    checkpoint: CheckpointId
