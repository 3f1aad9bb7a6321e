"""How a caller's word for a job becomes that job, for every operation that is about one."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.service.operations import Operation
from coordinator.views.jobs import resolve
from muster.domain.errors import UnknownNameError
from muster.domain.ids import JobId


def resolved(operation: Operation, cluster: Cluster, name: str) -> JobId:
    """The job that the caller of an operation means; raises an error unless the caller may do it there."""
    try:
        job = resolve(cluster, name, operation.caller.seen_projects)
    except UnknownNameError:
        operation.unseen()
        raise
    operation.require_access(cluster.jobs[job].spec.project)  # which may have been removed since the job has ended
    operation.target = job
    return job
