"""What clients ask for: submit, stop, delete."""

from dataclasses import replace

from coordinator.core import attempts, placement
from coordinator.core.answers import Accepted, Answer, RefusalCause, Refused
from coordinator.core.cluster import Cluster
from coordinator.core.events import DeleteRequested, JobSubmitted, StopRequested
from coordinator.core.placement import Offer
from coordinator.core.records import Job
from coordinator.core.scheduling import possible
from coordinator.core.starts import enqueue
from coordinator.core.turn import Turn
from muster.domain.ids import JobId


def submit(turn: Turn, event: JobSubmitted) -> Answer:
    """Accept a job, unless no node could ever run it; the same key gives the same job."""
    known = turn.cluster.job_of_key(event.idempotency_key)
    if known is not None:
        return Accepted(job=known)
    never = None if event.queue_anyway else possible(turn.cluster, event.spec)
    if never is not None:
        return Refused(
            cause=RefusalCause.IMPOSSIBLE,
            message=f"no node could ever run it: {never}",
            refusals=placement.refusals(event.spec, Offer(stock=turn.cluster.capacities.fresh())),
        )
    full = _full(turn.cluster, event.spec.size)
    if full is not None:
        return full
    if event.job in turn.cluster.jobs:
        return Refused(cause=RefusalCause.CONFLICT, message=f"there is a job {event.job} already; submit again")
    job = Job(
        id=event.job,
        spec=event.spec,
        sequence=turn.cluster.next_sequence,
        submitted_at=turn.now,
        idempotency_key=event.idempotency_key,
    )
    if not event.dry_run:
        turn.put(job)
        enqueue(turn, job)
    return Accepted(job=job)


def stop(turn: Turn, event: StopRequested) -> Answer:
    """Order a job to stop; one that has ended stays as it is."""
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return unknown(event.job)
    if job.ended_at is None and job.stop_requested_at is None:
        turn.put(replace(job, stop_requested_at=turn.now))
        attempts.stop(turn, (job.id, job.attempt))
    return Accepted(job=turn.cluster.jobs[event.job])


def delete(turn: Turn, event: DeleteRequested) -> Answer:
    """Forget a job; one that has not ended is stopped first if the client insists, and refused otherwise."""
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return unknown(event.job)
    if job.ended_at is not None:
        turn.drop(job.id)
        return Accepted(job=job)
    if not event.force:
        message = f"job {job.id} has not ended ({turn.cluster.phase(job.id)}); stop it first, or delete it with force"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    turn.put(replace(job, delete_when_ended=True))
    return stop(turn, StopRequested(job=job.id))


def _full(cluster: Cluster, size: int) -> Refused | None:
    """Why there is no room for another job of so many executions; None where there is."""
    limits, kept = cluster.limits, len(cluster.executions)
    if cluster.waiting >= limits.waiting:
        message = f"{cluster.waiting} jobs wait already, as many as the coordinator takes; try again when some have run"
    elif kept + size > limits.executions:
        message = (
            f"the coordinator keeps {kept} executions and takes {limits.executions} at most, so {size} more are too "
            "many; delete jobs that have ended (`muster delete`)"
        )
    else:
        return None
    return Refused(cause=RefusalCause.EXHAUSTED, message=message)


def unknown(job: JobId) -> Refused:
    """The answer for a job that is not there."""
    return Refused(cause=RefusalCause.UNKNOWN, message=f"there is no job {job}; `muster jobs --all` lists them")
