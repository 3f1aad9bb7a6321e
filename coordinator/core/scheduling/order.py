"""Orders of waiting jobs: which goes first within its leaf, and which across leaves."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.lines import SortKey
from coordinator.core.records import Job


def by_priority(job: Job) -> SortKey:
    """Higher priority first, then first come, first served; the order within a leaf."""
    return (-job.spec.priority, job.sequence)


def across_leaves(cluster: Cluster, job: Job) -> SortKey:  # noqa: ARG001 - what leaves have and may have is in it
    """Key of the first job of a leaf among those of other leaves; the least is next.

    It may change whenever a job is placed, but then only for the worse.
    """
    return by_priority(job)
