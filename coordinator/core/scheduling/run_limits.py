"""How long user code may run in a pool: a job that may run for longer is not placed there."""

from collections.abc import Mapping
from datetime import timedelta

from coordinator.core.cluster.cluster import Cluster
from muster.domain.jobs.job import JobSpec


def longest_runs(cluster: Cluster) -> Mapping[str, timedelta]:
    """The pools in which nothing runs longer than so long."""
    pools = cluster.records.pools.values()
    return {pool.name: pool.longest_run for pool in pools if pool.longest_run is not None}


def too_short(cluster: Cluster, spec: JobSpec) -> Mapping[str, timedelta]:
    """The pools in which nothing runs as long as this job may; none for a job without a limit."""
    limit = spec.timeouts.run
    return {} if limit is None else {pool: most for pool, most in longest_runs(cluster).items() if most < limit}


def pools_for(cluster: Cluster, spec: JobSpec) -> tuple[str, ...] | None:
    """The pools that a job may ever be placed in, in order; None: in any."""
    named, closed = tuple(choice.pool for choice in spec.pools), too_short(cluster, spec)
    if not closed:
        return named or None
    return tuple(pool for pool in named or cluster.load.total.fresh().pools if pool not in closed)
