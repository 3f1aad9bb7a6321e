"""Types of nodes that a project may use: who is refused, and where the others go."""

from dataclasses import replace

from coordinator.core.answers import RefusalCause, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Job
from muster.domain.jobs.job import JobSpec
from muster.domain.quoting import did_you_mean


def allowed(cluster: Cluster, project: str) -> tuple[str, ...]:
    """The types that a project may use, by its terms or those of its department; empty: all, and nodes without one."""
    said = (unit.terms.everywhere.types for unit in cluster.unit_load.units.get(project).line())
    return next(filter(None, said), ())


def refusal(cluster: Cluster, spec: JobSpec) -> Refused | None:
    """Why a job cannot have the types that it names, with the one that was probably meant; None: it can."""
    may = allowed(cluster, spec.project)
    wrong = next((each for each in spec.node_types if may and each not in may), None)
    if wrong is None:
        return None
    meant = did_you_mean(wrong, may)
    message = f"node_type: project {spec.project} may not use nodes of type {wrong}, only {', '.join(may)}{meant}"
    return Refused(cause=RefusalCause.INVALID, message=message)


def settled(cluster: Cluster, spec: JobSpec) -> JobSpec:
    """The job with the types of its project, where it names none itself."""
    types = spec.node_types or allowed(cluster, spec.project)
    return spec if types == spec.node_types else replace(spec, node_types=types)


def followed(cluster: Cluster, job: Job) -> Job:
    """A job that is not placed with the types of its project, if it was submitted without any: terms may be others."""
    types = allowed(cluster, job.spec.project) if _names_none(job) else job.spec.node_types
    if types == job.spec.node_types:
        return job
    return replace(job, spec=replace(job.spec, node_types=types), submitted=job.submitted or job.spec)


def _names_none(job: Job) -> bool:
    return not (job.submitted or job.spec).node_types
