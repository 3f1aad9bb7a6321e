"""Changes of submitted jobs that clients ask for."""

from dataclasses import replace
from itertools import islice

from coordinator.core.answers import Accepted, Answer, RefusalCause, Refused
from coordinator.core.attempts import waiting
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import ChangeRequested
from coordinator.core.records import Job
from coordinator.core.requests import pools
from coordinator.core.requests.jobs import never, unknown
from coordinator.core.sharing.job_classes import class_of
from coordinator.core.turn.turn import Turn
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import NOT_PLACED
from muster.domain.jobs.queueing.waiting import WaitKind
from muster.domain.jobs.rules.job_rules import MOST_TOLD, faults


def take(turn: Turn, event: ChangeRequested) -> Answer:
    """Make a job other than it was submitted; most of it can be changed only until it is placed."""
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return unknown(event.job)
    spec = event.change.applied(job.spec)
    refused = _not_now(turn.cluster, job, event) or _breaks_rules(spec) or _nowhere_to_go(turn.cluster, job.spec, spec)
    if refused is not None or spec == job.spec:
        return refused or Accepted(job=job)
    job = _classified(turn, job, spec)
    holds = job.holds
    if spec.not_before != job.spec.not_before:
        holds = waiting.with_time(job.holds_but(WaitKind.TIME), spec.not_before, turn.now)
    changed = replace(job, spec=spec, submitted=job.submitted or job.spec, changes=job.changes + 1, holds=holds)
    turn.cluster.deadlines.watch_job(changed)
    turn.cluster.deadlines.watch_queue(turn.cluster.attempts[job.attempt_id], changed)
    waiting.hold(turn, changed)
    turn.reconsider_queue()
    return Accepted(job=turn.cluster.jobs[job.id])


def _not_now(cluster: Cluster, job: Job, event: ChangeRequested) -> Refused | None:
    """Why a job is too far for a change; None: it is not."""
    phase = cluster.phase(job.id)
    if cluster.newest_attempt(job.id).ended_at is not None:
        return Refused(cause=RefusalCause.CONFLICT, message=f"job {job.id} has ended ({phase})")
    if cluster.gangs.rank(job.attempt_id, 0).state in NOT_PLACED or event.change.of_placed_jobs:
        return None
    message = f"job {job.id} has its nodes already ({phase}); only its priority can be changed now"
    return Refused(cause=RefusalCause.CONFLICT, message=message)


def _breaks_rules(spec: JobSpec) -> Refused | None:
    """Which rules of jobs a job would break; None: none."""
    wrong = "\n".join(str(fault) for fault in islice(faults(spec), MOST_TOLD))
    return Refused(cause=RefusalCause.INVALID, message=wrong) if wrong else None


def _nowhere_to_go(cluster: Cluster, before: JobSpec, after: JobSpec) -> Refused | None:
    """Why a job cannot go where it would then go: the pools, or its terms, or nodes that a job could never have.

    A job that could never run, and was submitted all the same, may be changed to another one that never could.
    """
    moved = before.pools != after.pools or before.job_class is not after.job_class
    if not moved and before.timeouts.run == after.timeouts.run:
        return None
    if (closed := pools.refusal(cluster, after)) is not None:
        return closed
    return never(cluster, after) if moved and never(cluster, before, by_node=False) is None else None


def _classified(turn: Turn, job: Job, spec: JobSpec) -> Job:
    """The job with the class that it has by another spec; it claims nothing that it would not be given now."""
    if job.spec.pools == spec.pools and job.spec.job_class is spec.job_class:
        return job
    attempt, load = turn.cluster.attempts[job.attempt_id], turn.cluster.unit_load
    if attempt.claim is not None:
        turn.put(replace(attempt, claim=None))
    return replace(job, job_class=class_of(load.units, spec, load.pools_of(spec)))
