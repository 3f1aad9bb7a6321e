"""Changes of submitted jobs that clients ask for."""

from dataclasses import replace
from itertools import islice

from coordinator.core.answers import Accepted, Answer, RefusalCause, Refused
from coordinator.core.attempts import waiting
from coordinator.core.events import ChangeRequested
from coordinator.core.requests.jobs import unknown
from coordinator.core.turn.turn import Turn
from muster.domain.jobs.lifecycle import NOT_PLACED
from muster.domain.jobs.queueing.waiting import WaitKind
from muster.domain.jobs.rules.job_rules import MOST_TOLD, faults


def take(turn: Turn, event: ChangeRequested) -> Answer:
    """Make a job other than it was submitted; most of it can be changed only until it is placed."""
    job = turn.cluster.jobs.get(event.job)
    if job is None:
        return unknown(event.job)
    phase = turn.cluster.phase(job.id)
    if job.ended_at is not None:
        return Refused(cause=RefusalCause.CONFLICT, message=f"job {job.id} has ended ({phase})")
    placed = turn.cluster.gangs.rank(job.attempt_id, 0).state not in NOT_PLACED
    if placed and not event.change.of_placed_jobs:
        message = f"job {job.id} has its nodes already ({phase}); only its priority can be changed now"
        return Refused(cause=RefusalCause.CONFLICT, message=message)
    spec = event.change.applied(job.spec)
    if spec == job.spec:
        return Accepted(job=job)
    wrong = "\n".join(str(fault) for fault in islice(faults(spec), MOST_TOLD))
    if wrong:
        return Refused(cause=RefusalCause.INVALID, message=wrong)
    holds = job.holds
    if spec.not_before != job.spec.not_before:
        holds = waiting.with_time(job.holds_but(WaitKind.TIME), spec.not_before, turn.now)
    changed = replace(job, spec=spec, submitted=job.submitted or job.spec, changes=job.changes + 1, holds=holds)
    turn.cluster.deadlines.watch_job(changed)
    turn.cluster.deadlines.watch_queue(turn.cluster.attempts[job.attempt_id], changed)
    waiting.hold(turn, changed)
    turn.reconsider_queue()
    return Accepted(job=turn.cluster.jobs[job.id])
