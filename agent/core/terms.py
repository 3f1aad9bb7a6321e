"""What an agent must know of an execution to keep it from running beside a later attempt."""

from dataclasses import dataclass
from datetime import timedelta

from muster.domain.gangs.fence import Fence
from muster.domain.ids import ExecutionId, JobId

AttemptKey = tuple[JobId, int]
"""Job and number of the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The attempt that an execution belongs to, and how it may run while the coordinator is out of reach."""

    job: JobId
    attempt: int
    grace: timedelta
    fence: Fence

    @property
    def key(self) -> AttemptKey:
        """Names the attempt."""
        return self.job, self.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """An execution whose user code runs, or may run at any moment."""

    execution: ExecutionId
    terms: Terms
