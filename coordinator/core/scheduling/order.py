"""Orders of waiting jobs: which goes first within its project, and which across projects."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Job
from coordinator.core.sharing.precedence import PlaceInProject, Precedence, Tier, precedence, tier
from muster.domain.fleet.quota import Amounts


def within_project(job: Job) -> PlaceInProject:
    """Guaranteed jobs first and spare ones last, then higher priority, then first come, first served."""
    return (job.job_class.order, -job.spec.priority, job.sequence)


def across_leaves(cluster: Cluster, job: Job, pool: str) -> Precedence:
    """Where the first queued job of a project stands among those of other projects, in a pool; the least is next.

    It may change whenever a job is placed, but then only for the worse. Shares are those of the last time that
    they were worked out.
    """
    load = cluster.unit_load
    counted = load.units.counted(pool)
    if not counted:
        return ((), within_project(job))
    path = load.units.path(job.spec.project, pool)
    return precedence(path, _size(cluster, job), counted, job.job_class, within_project(job))


def worst_tier(cluster: Cluster, job: Job, pool: str) -> Tier:
    """What a queued job would use of a pool at the level where that is worst."""
    load = cluster.unit_load
    counted, size = load.units.counted(pool), _size(cluster, job)
    return max(tier(each, size, counted, job.job_class) for each in load.units.path(job.spec.project, pool))


def _size(cluster: Cluster, job: Job) -> Amounts:
    return cluster.queue.request_class(job.id).size
