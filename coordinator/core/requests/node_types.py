"""Types of nodes that a project may use: who is refused, and where the others go."""

from dataclasses import replace

from coordinator.core.answers import RefusalCause, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import Among
from coordinator.core.records import Job
from coordinator.core.turn.turn import Turn
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import NOT_PLACED
from muster.domain.quoting import nearest


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
    near = nearest(wrong, may)
    meant = f"; did you mean {near}?" if near is not None else ""
    message = f"node_type: project {spec.project} may not use nodes of type {wrong}, only {', '.join(may)}{meant}"
    return Refused(cause=RefusalCause.INVALID, message=message)


def settled(cluster: Cluster, spec: JobSpec) -> JobSpec:
    """The job with the types of its project, where it names none itself."""
    types = spec.node_types or allowed(cluster, spec.project)
    return spec if types == spec.node_types else replace(spec, node_types=types)


def settle_all(turn: Turn) -> None:
    """Have jobs that are not placed and were submitted without a type follow their project, whose terms may be others.

    What such a job has claimed is given back, as it may be on nodes of a type that it may not use any more.
    """
    live = turn.cluster.job_index.newest_first(among=Among(live=True))
    for job in [turn.cluster.jobs[name] for _, name in live if name is not None]:
        types = allowed(turn.cluster, job.spec.project) if _names_none(job) else job.spec.node_types
        if types != job.spec.node_types and turn.cluster.gangs.rank(job.attempt_id, 0).state in NOT_PLACED:
            turn.put(replace(turn.cluster.attempts[job.attempt_id], claim=None))
            turn.put(replace(job, spec=replace(job.spec, node_types=types), submitted=job.submitted or job.spec))


def _names_none(job: Job) -> bool:
    return not (job.submitted or job.spec).node_types
