"""What an agent must know of an execution to keep it from running beside a later attempt."""

from dataclasses import dataclass
from datetime import timedelta

from muster.domain.gangs.fence import Fence
from muster.domain.ids import AttemptId, ExecutionId, JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The attempt that an execution belongs to, and how it may run while the coordinator is out of reach."""

    job: JobId
    attempt: int
    grace: timedelta
    fence: Fence

    @property
    def attempt_id(self) -> AttemptId:
        """Names the attempt."""
        return AttemptId(self.job, self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """An execution whose user code runs, or may run at any moment."""

    execution: ExecutionId
    terms: Terms
