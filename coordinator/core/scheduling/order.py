"""Orders of the queue: which waiting job goes first."""

from coordinator.core.cluster.queue import SortKey
from coordinator.core.records import Job


def by_priority(job: Job) -> SortKey:
    """Higher priority first, then first come, first served."""
    return (-job.spec.priority, job.sequence)
